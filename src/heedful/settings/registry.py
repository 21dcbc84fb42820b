"""
Registries of the parts that settings name: heedful's own parts, and those of plugins.

Heedful's own parts may be given as ``module:name``, which is imported when the part is used. So the
names are known without torch.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pkgutil import resolve_name
from typing import Any, ClassVar, TypeVar

from heedful.errors import PluginError

Part = TypeVar("Part")
_NAME = re.compile(r"[\w.+-]+")
# The plugin that is being loaded.
_loading: ContextVar[Any] = ContextVar("loading", default=None)


class Registry(Mapping[str, Part]):
    """
    The parts of one kind by their names.

    Parameters
    ----------
    kind : str
        The noun for a part of this kind in messages.
    own : mapping of str to object
        Heedful's own parts; a string is ``module:name``.
    refusal : callable, optional
        Maps a name and a part to an error message, which is empty if the part can be registered.

    Notes
    -----
    Heedful looks up its own parts in the same way as those of plugins.
    """

    every: ClassVar[list["Registry[Any]"]] = []
    """All registries."""

    def __init__(
        self,
        kind: str,
        own: Mapping[str, Any],
        refusal: Callable[[str, Any], str] = lambda name, part: "",
    ) -> None:
        self.kind, self.own, self._parts, self._refusal = kind, own, dict(own), refusal
        self._plugins: dict[str, Any] = {}
        self._watchers: list[Callable[[], None]] = []
        Registry.every.append(self)

    def __getitem__(self, name: str) -> Part:
        part = self._parts[name]
        if isinstance(part, str):
            part = self._parts[name] = resolve_name(part)
        resolved: Part = part
        return resolved

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def register(self, name: str, part: Part) -> None:
        """
        Add a part under a name that settings may take as a value.

        Parameters
        ----------
        name : str
            The name: letters, digits and ``. + - _``.
        part : object
            The part; `heedful.plugins` says what each kind must offer.

        Returns
        -------
        None
            The name is known from now on.

        Notes
        -----
        Raises `PluginError` if the name is invalid or taken, or if the part is not of this kind.
        """
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise PluginError(
                f"the name of a {self.kind} must be letters, digits and . + - _, but got {name!r}."
            )
        if name in self._parts:
            owner = self._plugins.get(name)
            raise PluginError(
                f"the name of a {self.kind} must be new, but {name!r} belongs to "
                f"{'heedful' if owner is None else owner}; choose another name."
            )
        if wrong := self._refusal(name, part):
            raise PluginError(f"the {self.kind} {name!r} {wrong}.")
        self._parts[name] = part
        self._plugins[name] = _loading.get()
        try:
            self._notify()
        except BaseException:
            del self._parts[name], self._plugins[name]
            with suppress(Exception):  # the first error is the one to tell
                self._notify()
            raise

    def added(self) -> tuple[str, ...]:
        """List the names that are not heedful's own."""
        return tuple(self._plugins)

    def plugin_of(self, name: str) -> Any:
        """Return the plugin that registered a name; None if no plugin file did."""
        return self._plugins.get(name)

    def forget(self, plugin: Any) -> None:
        """Remove the parts that a plugin registered."""
        names = [name for name, owner in self._plugins.items() if owner is plugin]
        for name in names:
            del self._parts[name], self._plugins[name]
        if names:
            self._notify()

    def watch(self, function: Callable[[], None]) -> None:
        """Register a function to call after each change to the registry."""
        self._watchers.append(function)

    def _notify(self) -> None:
        """Call the functions that watch the registry."""
        for function in self._watchers:
            function()


@contextmanager
def registering(plugin: Any) -> Iterator[None]:
    """Record a plugin as the owner of all parts that are registered inside the context."""
    token = _loading.set(plugin)
    try:
        yield
    finally:
        _loading.reset(token)


def cannot_take(function: Any, names: Sequence[str]) -> str:
    """Return an error message if a function cannot take these arguments; empty if it can."""
    wanted = f"must be a function of ({', '.join(names)})"
    if not callable(function):
        return f"{wanted}, but is {type(function).__name__}"
    try:
        inspect.signature(function).bind(*names)
    except TypeError:
        return f"{wanted}, but takes {inspect.signature(function)}"
    except ValueError:  # a C function without a signature
        return ""
    return ""
