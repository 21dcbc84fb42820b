"""`heedful quickstart`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Device, Precision, Threads


def quickstart(
    out: Annotated[Path, typer.Option(help="The folder to make.")] = Path("quickstart"),
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with the training that was interrupted in --out."),
    ] = False,
    device: Device = "auto",
    precision: Precision = "auto",
    threads: Threads = 0,
) -> None:
    """
    Make a small translator from nothing, and score and draw it.

    Nothing is downloaded: a small English-French grammar writes the text. A small model learns it
    in a minute or two, is averaged, and translates sentences that it has never seen; BLEU,
    alignments and attention follow.
    """
    from heedful.quickstart import quickstart as run

    run(out, device=device, precision=precision, threads=threads, say=typer.echo, resume=resume)
