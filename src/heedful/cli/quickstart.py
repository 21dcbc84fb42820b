"""`heedful quickstart`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from heedful.cli.options import Device, Precision, Threads


def quickstart(
    out: Annotated[Path, typer.Option(help="Output folder.")] = Path("quickstart"),
    task: Annotated[
        Literal["translation", "parsing"], typer.Option(help="What to learn.")
    ] = "translation",
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue an interrupted training in --out."),
    ] = False,
    device: Device = "auto",
    precision: Precision = "auto",
    threads: Threads = 0,
) -> None:
    """
    Train a small translator or parser without data, and score it.

    A small English-French grammar generates the text. A small model learns it in a minute or two.
    Its checkpoints are averaged, and it translates unseen sentences, with BLEU, alignments and
    attention. With --task parsing it learns the trees of the English sentences instead.
    """
    if task == "parsing":
        from heedful.quickstart_parsing import quickstart_parsing as run
    else:
        from heedful.quickstart import quickstart as run

    run(out, device=device, precision=precision, threads=threads, say=typer.echo, resume=resume)
