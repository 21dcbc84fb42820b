"""The option `--plugin` of commands that open or create runs."""

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.signatures import Command, with_parameters

PluginFiles = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Python file that registers your own components; heedful executes it. May be "
        "repeated.",
    ),
]


def with_plugins(command: Command) -> Command:
    """Give a command the option `--plugin`; its files are loaded before the command begins."""
    option = inspect.Parameter(
        "plugin", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=PluginFiles
    )
    parameters = [*inspect.signature(command).parameters.values(), option]

    def run(**values: Any) -> None:
        if files := values.pop("plugin"):
            from heedful.plugins import load_plugins

            load_plugins(files)
        command(**values)

    return with_parameters(command, run, parameters)
