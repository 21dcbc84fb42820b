"""`heedful parse evaluate`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Json, Seed, SignificanceTest, Trials, refuse, warn
from heedful.cli.terminal_text import echo_json


def evaluate(
    gold: Annotated[Path, typer.Option(help="File of gold trees, each on one or several lines.")],
    predicted: Annotated[
        Path,
        typer.Option(
            help="File of predicted trees, one per line; an empty line stands for a missing tree."
        ),
    ],
    against: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Another parser's trees, to test whether its F1 differs significantly; may be "
            "repeated.",
        ),
    ] = None,
    parameters: Annotated[
        Path | None,
        typer.Option(help="A .prm file of EVALB; by default the parameters of COLLINS.prm."),
    ] = None,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Print the 95% confidence interval of F1.")
    ] = False,
    test: SignificanceTest = "randomization",
    trials: Trials = 10_000,
    seed: Seed = 12_345,
    evalb: Annotated[
        bool,
        typer.Option(
            "--evalb",
            help="Print EVALB's own table instead. It is computed from the lines as they are, "
            "or from cleaned trees if the files have different numbers of lines.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """
    Score predicted trees against gold trees by EVALB's rules.

    No sentence is left out: a sentence whose predicted tree is missing or does not have the gold
    tree's words counts as unparsed. EVALB leaves such sentences out; its score is printed below
    heedful's.
    """
    from heedful.evaluation.significance import Resampling
    from heedful.tasks.parsing.trees.evalb_table import evalb_table
    from heedful.tasks.parsing.trees.evaluate import as_text, evalb_files, evaluate_trees

    if evalb:
        if against or confidence or as_json:
            refuse(
                "--evalb",
                "prints a table and nothing else; leave --against, --confidence and --json out.",
            )
        result, warnings = evalb_files(gold, predicted, parameters)
        for text in warnings:
            warn(text)
        typer.echo("\n".join(evalb_table(result)))
        return
    evaluation = evaluate_trees(
        gold,
        predicted,
        against=against or (),
        parameters=parameters,
        confidence=confidence,
        test=test,
        resampling=Resampling(trials, seed),
    )
    for text in evaluation.warnings:
        warn(text)
    if as_json:
        echo_json(evaluation.to_dict())
    else:
        typer.echo(as_text(evaluation))
