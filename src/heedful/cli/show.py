"""`heedful data show`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import refuse
from heedful.cli.terminal_text import echo, read_argument


def show(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="A run folder, or the output folder of heedful data prepare."
        ),
    ],
    corpus: Annotated[
        str,
        typer.Option(
            help="Name of a corpus, if there are several; by default the first in alphabetical "
            "order."
        ),
    ] = "",
    lines: Annotated[int, typer.Option(min=1, help="Number of pairs.")] = 5,
    first: Annotated[int, typer.Option(min=0, help="Index of the first pair, counted from 0.")] = 0,
    ids: Annotated[bool, typer.Option("--ids", help="Print subword ids too.")] = False,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            help="Random seed of data.subword_sampling and data.augment.",
        ),
    ] = 1,
    source: Annotated[
        str | None, typer.Option(help="Show this source text instead of training pairs.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Translation of --source.")] = None,
) -> None:
    """
    Print pairs exactly as the model sees them.

    For each pair, the command prints and counts the subwords of the source, of the decoder's input
    and of the decoder's output. Special symbols and language tags are included. Unknown subwords
    are shown as <unk> and counted.
    """
    if (source is None) != (target is None):
        refuse("--source", "and --target must be given together, but one is missing.")

    from heedful.preparation.show import show_pair, show_pairs

    shown = (
        show_pairs(folder, corpus=corpus, first=first, count=lines, ids=ids, seed=seed)
        if source is None or target is None
        else show_pair(folder, read_argument(source), read_argument(target), ids=ids, seed=seed)
    )
    for line in shown:
        echo(line)
