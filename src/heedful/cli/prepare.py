"""`heedful data prepare`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import say
from heedful.cli.terminal_text import echo


def prepare(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE",
            help="Name of a built-in recipe, or a TOML file; its data settings are used.",
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="Output folder; an interrupted preparation in it is continued.")
    ],
    source: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Source text, in any format that heedful train reads."),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Target text, aligned with the source line by line."),
    ] = None,
    corpora: Annotated[
        Path | None,
        typer.Option(
            help="TOML file that describes several corpora, instead of --source and --target."
        ),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            help="Tokenizer to use instead of learning subwords; takes the same values as in "
            "heedful train."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change a setting: data.drop_duplicates=true."
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Text such as a test set; training pairs that repeat one of its lines, exactly "
            "or nearly, are dropped. May be repeated.",
        ),
    ] = None,
    valid_source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Held-out source text; training pairs that repeat one of its lines are reported.",
        ),
    ] = None,
    valid_target: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Held-out target text.")
    ] = None,
    processes: Annotated[
        int, typer.Option(min=0, help="Number of encoding processes; 0 for one per core.")
    ] = 0,
) -> None:
    """
    Learn subwords and encode text ahead of training.

    Train on the output folder with `heedful train --data`. The same command continues an
    interrupted preparation. The command prints how many pairs each cleaning rule dropped, with
    examples. It also writes this report to data/report.json in the output folder, or with --corpora
    to data/NAME/report.json for each corpus. Pairs with escapes of Moses' tokenizer are counted
    too; data.unescape undoes the escapes.
    """
    from heedful.preparation.prepare import prepare as run

    report = run(
        recipe,
        out=out,
        source=source or None,
        target=target or None,
        corpora=corpora,
        tokenizer=tokenizer,
        settings=set_ or [],
        exclude=exclude or None,
        valid_source=valid_source or None,
        valid_target=valid_target or None,
        processes=processes,
        say=say,
    )
    echo(report.table())
