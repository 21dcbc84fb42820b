"""The option `--plugin` of every command that opens or makes a run."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

PluginFiles = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="A Python file that registers parts of your own; it is executed. May be repeated.",
    ),
]


def with_plugins(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option `--plugin`, whose files are loaded before it begins."""
    signature = inspect.signature(command)
    option = inspect.Parameter(
        "plugin", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=PluginFiles
    )
    parameters = [*signature.parameters.values(), option]

    @wraps(command)
    def run(**values: Any) -> None:
        if files := values.pop("plugin"):
            from heedful.plugins import load_plugins

            load_plugins(files)
        command(**values)

    # typer reads both
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run
