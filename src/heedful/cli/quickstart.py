"""`heedful quickstart`."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from heedful.cli.options import Device, Precision, Threads
from heedful.tasks.registry import task_folder, task_names

if TYPE_CHECKING:
    TaskName = str
else:
    TaskName = Literal[("translation", *task_names())]


def quickstart(
    out: Annotated[Path, typer.Option(help="Output folder.")] = Path("quickstart"),
    task: Annotated[TaskName, typer.Option(help="What to learn.")] = "translation",
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue interrupted training in --out."),
    ] = False,
    device: Device = "auto",
    precision: Precision = "auto",
    threads: Threads = 0,
) -> None:
    """
    Train a small translator or parser without data, and score it.

    A small English-French grammar generates the text, and a small model learns from it in a minute
    or two. The last checkpoints are averaged, and the model translates unseen sentences. Then the
    command prints BLEU and the alignment error rate, and draws a picture of the attention. With
    --task parsing, the model learns the trees of the English sentences instead.
    """
    run = import_module(f"{task_folder(task)}.quickstart").quickstart
    run(out, device=device, precision=precision, threads=threads, say=typer.echo, resume=resume)
