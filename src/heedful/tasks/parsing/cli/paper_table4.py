"""`heedful paper table4`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Device, Json, Threads, say
from heedful.cli.paper_figures import echo_table
from heedful.cli.terminal_text import echo_json


def table4(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUN]...", help="Run folders of parsers.")
    ] = None,
    trees: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of gold trees to score the parsers on; their training must "
            "not include these trees.",
        ),
    ] = None,
    train_trees: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="File of the runs' training trees; may be repeated. Two probabilistic grammars "
            "(PCFGs) learned from these trees are scored too, which takes minutes and much memory.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write table4.md and table4.json here.")
    ] = None,
    as_json: Json = False,
    device: Device = "auto",
    threads: Threads = 0,
) -> None:
    """
    List published parsers, and score your own.

    Without --trees, only the paper's rows are printed; RUN and --train-trees need --trees. With
    --train-trees, two grammars learned from these trees are scored, too. Scores of your parsers
    have 95% confidence intervals. The command also compares each parser with the next best, and
    reports whether the difference is significant. `heedful parse train` trains a parser.
    """
    from heedful.experiments.page import write_table
    from heedful.files import make_folder
    from heedful.paper.table4 import make_table4

    if out is not None:  # fails before the work if the folder cannot be written
        make_folder(out)
    table = make_table4(
        runs or [], trees, train_trees or [], device=device, threads=threads, say=say
    )
    if out is not None:
        write_table(out, "table4", table.to_markdown(), table.to_dict())
    if as_json:
        echo_json(table.to_dict())
        return
    typer.echo("Published F1 on section 23 of the Wall Street Journal")
    echo_table(table.published_rows)
    if table.parsers:
        typer.echo(f"\nF1 measured here on {table.sentences:,} sentences of {trees}")
        echo_table(table.own_rows)
        typer.echo()
        for conclusion in table.conclusions:
            typer.echo(conclusion)
    if out is not None:
        typer.echo(f"\n{out}")
