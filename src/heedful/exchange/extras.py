"""Import of optional packages."""

from importlib import import_module
from types import ModuleType

from heedful.errors import MissingExtra


def import_extra(module: str, purpose: str, extra: str = "exchange") -> ModuleType:
    """Import a package of an extra. Raises `MissingExtra` with an installation command."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"{purpose} needs {module.partition('.')[0]}, which is not installed; install it with: "
            f"pip install 'heedful[{extra}]'"
        ) from error
