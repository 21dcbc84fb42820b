"""`heedful extend`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import RunPath, Weights, say
from heedful.cli.terminal_text import echo


def extend(
    run: RunPath,
    out: Annotated[Path, typer.Option(help="Run folder to create.")],
    source: Annotated[
        list[str] | None,
        typer.Option(help="Source text in the new language: files or glob patterns."),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(help="Target text in the new language: files or glob patterns."),
    ] = None,
    tag: Annotated[
        str,
        typer.Option(
            help="Code of the new language, such as de for the tag >>de<< at the start of source "
            "lines."
        ),
    ] = "",
    pieces: Annotated[
        int,
        typer.Option(min=0, max=1_000_000, help="Maximum number of new subwords per vocabulary."),
    ] = 500,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="Text of the old languages; new subwords that would change its segmentation are "
            "left out."
        ),
    ] = None,
    weights: Weights = "default",
) -> None:
    """Extend the vocabulary of a run to another language."""
    from heedful.training.extend import NewLanguage
    from heedful.training.extend import extend as extend_run

    language = NewLanguage(source, target, pieces, tag, keep)
    extended = extend_run(run, out, language, weights=weights)
    for note in extended.notes:
        say(f"note: {note}")
    echo(f"{extended}.")
