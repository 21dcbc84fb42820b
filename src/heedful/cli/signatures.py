"""Support for decorators that change the options of commands."""

import inspect
from collections.abc import Callable, Sequence
from functools import wraps

Command = Callable[..., None]


def with_parameters(
    command: Command, run: Command, parameters: Sequence[inspect.Parameter]
) -> Command:
    """Wrap a command in `run`, and give the wrapper these parameters, which typer reads."""
    run = wraps(command)(run)
    signature = inspect.signature(command).replace(parameters=parameters)
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
