"""`heedful average`."""

from typing import Annotated

import typer

from heedful.cli.options import RunPath
from heedful.cli.terminal_text import echo


def average(
    run: RunPath,
    last: Annotated[
        int | None,
        typer.Option(min=1, help="Number of checkpoints to average; by default train.keep_last."),
    ] = None,
) -> None:
    """
    Average the last checkpoints.

    By default, heedful translate uses the average.
    """
    from heedful.runs.average import average as average_run
    from heedful.runs.checkpoint import read_state

    place = average_run(run, last)
    steps = read_state(place)["steps"]
    shortage = f" ({last} requested, but there are no more)" if last and last > len(steps) else ""
    names = ", ".join(f"{step:,}" for step in steps)
    s = "s" if len(steps) > 1 else ""
    echo(f"averaged {len(steps)} checkpoint{s}{shortage}, step{s} {names}, into {place}")
