"""`heedful plot`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from heedful.cli.options import run_argument, warn
from heedful.cli.terminal_text import echo


def plot(
    runs: Annotated[
        list[Path],
        run_argument("One or more run folders."),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The figure to write: .png, .svg or .pdf.")
    ] = None,
    x: Annotated[
        Literal["steps", "tokens", "hours"], typer.Option("--x", help="Horizontal axis.")
    ] = "steps",
    smooth: Annotated[
        int, typer.Option(min=1, help="Number of log lines to average around each point.")
    ] = 1,
    tensorboard: Annotated[
        Path | None,
        typer.Option(
            help="Write events for `tensorboard --logdir` to this folder, in a subfolder for each "
            "run."
        ),
    ] = None,
) -> None:
    """
    Draw learning curves, and print a line about each run.

    One page shows training loss, perplexity in training and validation, scores such as BLEU,
    learning rate and speed. Runs in progress can be drawn too. Without --out, only the lines are
    printed.
    """
    from heedful.analysis.plot import plot as plot_runs
    from heedful.analysis.plot import write_events
    from heedful.text.nouns import count_noun

    curves = plot_runs(runs, out, along=x, smooth=smooth)
    if tensorboard is not None:
        write_events(runs, tensorboard)
    for name, history in curves.runs.items():
        if history.unreadable:
            warn(
                f"the log of {name} has {count_noun(history.unreadable, 'unreadable line')}, "
                "which the curves leave out."
            )
    echo(repr(curves))
