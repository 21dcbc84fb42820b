"""`heedful paper claims`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Json, Threads, say
from heedful.cli.paper_figures import echo_table
from heedful.cli.paper_table2 import Budget, Data, SourceLanguage, Vocabulary
from heedful.cli.terminal_text import echo_json


def claims(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Names of the claims to test; by default all."),
    ] = None,
    data: Data = None,
    source_language: SourceLanguage = "en",
    vocabulary: Vocabulary = 4000,
    budget: Budget = "30m",
    out: Annotated[
        Path, typer.Option(help="Output folder; measurements already in it are not repeated.")
    ] = Path("claims"),
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            metavar="FOLDER",
            help="Output folder of an earlier call; its steps, budget and threads are used again.",
        ),
    ] = None,
    threads: Threads = 0,
    as_json: Json = False,
) -> None:
    """
    Test claims about the Transformer by measurement.

    Claims: convolution, shift, batch-norm, gradients, dot-product, parallel, mask, attention, long,
    encoders, batch-size, scores, heads, cost. One page shows a verdict for each claim, with numbers
    and a picture. For the last eight claims, small models are trained within the budget. All models
    of a claim are trained on the same number of tokens, padding included. The other claims need a
    minute and no data.
    """
    from heedful.experiments.corpus import choose_corpus
    from heedful.paper.claims.check import RESERVATION, check_claims, to_dict
    from heedful.paper.claims.table import CLAIMS
    from heedful.settings.durations import parse_duration

    results = check_claims(
        names or [],
        out,
        lambda: choose_corpus(data, source_language, vocabulary, out / "text"),
        parse_duration(budget, "--budget"),
        plan=plan,
        threads=threads,
        say=say,
    )
    if as_json:
        echo_json(to_dict(results))
        return
    for name, checked in results.items():
        typer.echo(f"{CLAIMS[name].statement} ({CLAIMS[name].source})")
        typer.echo(f"{checked.verdict} {checked.headline}\n{checked.sentence}")
        for title, rows in checked.tables:
            typer.echo(f"{title}:")
            echo_table(rows)
            typer.echo()
    typer.echo(RESERVATION)
    typer.echo(out)
