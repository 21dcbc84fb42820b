"""Options of a command as environment variables."""

import inspect
from collections.abc import Callable
from copy import copy
from typing import Annotated, Any, get_args

from heedful.cli.signatures import Command, with_parameters


def with_environment(prefix: str) -> Callable[[Command], Command]:
    """
    Let a command read each missing option from an environment variable.

    `prefix`: start of the variables' names, such as ``HEEDFUL_SERVE`` of ``HEEDFUL_SERVE_PORT``.
    """

    def decorate(command: Command) -> Command:
        parameters = [
            parameter.replace(annotation=_with_variable(parameter, prefix))
            for parameter in inspect.signature(command).parameters.values()
        ]

        def run(**values: Any) -> None:
            command(**values)

        return with_parameters(command, run, parameters)

    return decorate


def _with_variable(parameter: inspect.Parameter, prefix: str) -> Any:
    """Return a parameter's annotation with a copy of its option that also reads the variable."""
    kind, option = get_args(parameter.annotation)
    option = copy(option)
    option.envvar = f"{prefix}_{parameter.name.upper()}"
    return Annotated[kind, option]
