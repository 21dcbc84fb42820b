"""`heedful paper table2`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Json, Threads, say
from heedful.cli.paper_figures import echo_table
from heedful.cli.terminal_text import echo_json

Data = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder with train, valid and test files in two languages, such as train.en and "
        "train.de; by default a built-in grammar generates the text.",
    ),
]
SourceLanguage = Annotated[
    str, typer.Option(help="With --data: extension of the source files, such as en.")
]
Vocabulary = Annotated[
    int,
    typer.Option(min=100, help="With --data: vocabulary size; for the grammar it is always 1,000."),
]
Budget = Annotated[
    str, typer.Option(metavar="TIME", help="Time budget on this machine, such as 30m or 2h.")
]
TableFolder = Annotated[
    Path, typer.Option(help="Output folder, from which an interrupted call is continued.")
]


def _read_plan(plan: Path | None) -> Path | None:
    """Refuse a file that is not a plan before any text is written."""
    if plan is not None:
        from heedful.experiments.plan import Plan

        Plan.read(plan)
    return plan


EarlierPlan = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        callback=_read_plan,
        help="plan.json of an earlier call, whose steps, budget and threads are used again.",
    ),
]


def table2(
    data: Data = None,
    source_language: SourceLanguage = "en",
    vocabulary: Vocabulary = 4000,
    budget: Budget = "30m",
    out: TableFolder = Path("table2"),
    system: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="System to train: bytenet, deep-att, gnmt, gnmt-rl, convs2s, moe, base or big; "
            "may be repeated. By default all.",
        ),
    ] = None,
    ensembles: Annotated[
        bool,
        typer.Option(
            "--ensembles",
            help="For deep-att, gnmt, convs2s and base, also train and score an ensemble of "
            "three models with different seeds.",
        ),
    ] = False,
    plan: EarlierPlan = None,
    threads: Threads = 0,
    as_json: Json = False,
) -> None:
    """
    Train small versions of Table 2's systems, and compare them.

    Before training, the speed of the systems is measured to convert the budget to steps. All
    systems are trained for the same time, in total about 70% of the budget. The rest is for
    encoding, validation and scoring. After an interruption, the same command continues the work.
    """
    from heedful.experiments.corpus import choose_corpus
    from heedful.experiments.report import difference_rows, training_rows
    from heedful.files import make_folder
    from heedful.paper.table2 import make_table2
    from heedful.settings.durations import parse_duration

    seconds = parse_duration(budget, "--budget")
    make_folder(out)  # a folder that cannot be written is refused before the work
    corpus = choose_corpus(data, source_language, vocabulary, out / "text")
    table = make_table2(
        corpus,
        out,
        seconds,
        names=system or (),
        ensembles=ensembles,
        plan=plan,
        threads=threads,
        say=say,
    )
    if as_json:
        echo_json(table.to_dict())
        return
    typer.echo("Published")
    echo_table(table.published_rows)
    typer.echo(f"\nHere: {table.text}")
    echo_table(table.rows)
    if table.differences:
        typer.echo(f"\n{table.matrix[0]}")
        echo_table(difference_rows(table.differences))
    typer.echo()
    for reservation in table.reservations:
        typer.echo(reservation)
    typer.echo(f"\n{table.trainings[0]}")
    echo_table(training_rows(table.systems))
    typer.echo(f"\n{out}")
