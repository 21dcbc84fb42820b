"""`heedful quickstart`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Device, Precision, Threads


def quickstart(
    out: Annotated[Path, typer.Option(help="The folder to make.")] = Path("quickstart"),
    device: Device = "auto",
    precision: Precision = "auto",
    threads: Threads = 0,
) -> None:
    """
    Train, average, translate, score and draw attention, without any download.

    A small English-French grammar writes the text; a small model learns it in a minute or two and
    is scored on sentences that it has never seen.
    """
    from heedful.workflow.quickstart import quickstart as run

    run(out, device=device, precision=precision, threads=threads, say=typer.echo)
