"""`heedful info`."""

import json
from pathlib import Path
from typing import Annotated

from heedful.cli.options import Json, run_argument
from heedful.cli.terminal_text import echo


def info(
    run: Annotated[
        Path | None,
        run_argument("A run folder; without RUN, this machine is described."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show versions and devices, or describe a run."""
    from heedful.analysis.info import as_text, describe_installation, describe_run

    description = describe_installation() if run is None else describe_run(run)
    echo(json.dumps(description, indent=2) if as_json else as_text(description))
