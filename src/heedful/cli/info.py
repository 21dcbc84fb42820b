"""`heedful info`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.terminal_text import echo
from heedful.runs.hub_names import run_path


def info(
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN",
            help="A run folder; without one, this machine is described.",
            parser=run_path,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show versions and devices, or the facts about a run."""
    from heedful.analysis.info import as_text, describe_installation, describe_run

    description = describe_installation() if run is None else describe_run(run)
    echo(json.dumps(description, indent=2) if as_json else as_text(description))
