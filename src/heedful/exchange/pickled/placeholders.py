"""
Placeholders for the contents of a pickle: names, opaque objects, plain containers.

Reading a pickle calls only functions in `CONTAINERS` and in the table of `tensor_makers`. They
return numbers, text, containers or placeholders.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

_LONGEST_KEY = 16


@dataclass(frozen=True)
class GlobalName:
    """The name of a function or class in a pickle; it is only a string and is never imported."""

    path: str
    """Module and name, such as “argparse.Namespace”."""


@dataclass(eq=False, repr=False)
class OpaqueObject:
    """An opaque object: class name and contents, without behavior."""

    kind: str
    """Module and name of its class."""
    arguments: tuple[Any, ...] = ()
    """Arguments of its constructor."""
    state: dict[Any, Any] = field(default_factory=dict)
    """Its attributes."""
    entries: list[Any] = field(default_factory=list)
    """Items appended to it."""


Make = Callable[[tuple[Any, ...]], Any]
"""A function that maps the arguments of a call to the plain value that replaces its result."""


def of_type(kind: type, value: Any) -> Any:
    """Return an opcode's operand if it has exactly the given type, else raise `TypeError`."""
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}, but got {type(value).__name__}")
    return value


def key_of(value: Any) -> Any:
    """Check a key; `TypeError` for nested tuples, which can take exponential time to hash."""
    if isinstance(value, OpaqueObject):
        return value
    parts = value if isinstance(value, tuple) and len(value) <= _LONGEST_KEY else (value,)
    if all(isinstance(part, _SCALARS) for part in parts):
        return value
    raise TypeError(
        "a key must be a plain value or a short tuple of plain values, but got "
        f"{type(value).__name__}"
    )


def build_dictionary(values: Sequence[Any]) -> dict[Any, Any]:
    """Build a dictionary; `TypeError` for a bad key, `ValueError` if a value is missing."""
    keys = map(key_of, values[::2])
    return dict(zip(keys, values[1::2], strict=True))


def _as_dict(arguments: tuple[Any, ...]) -> dict[Any, Any]:
    """Convert a dictionary of `collections` to an ordinary dictionary."""
    content = arguments[-1] if arguments else {}
    if isinstance(content, GlobalName):  # the factory of a defaultdict
        return {}
    if isinstance(content, list):
        return build_dictionary([part for pair in content for part in _of_length(2, pair)])
    return dict(of_type(dict, content))


def _of_length(count: int, value: Any) -> Any:
    """Check the length of a list or tuple."""
    if not isinstance(value, list | tuple) or len(value) != count:
        raise TypeError(f"expected {count} values")
    return value


def _as_bytes(arguments: tuple[Any, ...]) -> bytes:
    """Decode the bytes of protocol 2, which stores them as text with an encoding."""
    text, encoding = _of_length(2, arguments)
    if encoding not in ("latin1", "latin-1"):
        raise ValueError(f"bytes must be written as latin1, but are written as {encoding!r:.40}")
    return bytes(of_type(str, text).encode("latin-1"))


def _stand_in(arguments: tuple[Any, ...]) -> OpaqueObject:
    """Create a placeholder for an object of protocol 0 or 1."""
    return OpaqueObject(of_type(GlobalName, arguments[0]).path)


def _as_list(arguments: tuple[Any, ...]) -> list[Any]:
    return list(of_type(list, arguments[0])) if arguments else []


def _as_set(arguments: tuple[Any, ...]) -> set[Any]:
    return set(map(key_of, _as_list(arguments)))


def _as_tuple(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_of_sequence(arguments[0])) if arguments else ()


def _of_sequence(value: Any) -> Any:
    return value if isinstance(value, tuple) else of_type(list, value)


_SCALARS = (str, bytes, int, float, bool, type(None), GlobalName)
_BUILTINS: dict[str, Make] = {
    "dict": _as_dict,
    "list": _as_list,
    "set": _as_set,
    "frozenset": _as_set,
    "tuple": _as_tuple,
}
CONTAINERS: dict[str, Make] = {
    **{
        f"{module}.{name}": make
        for name, make in _BUILTINS.items()
        for module in ("builtins", "__builtin__")
    },
    "collections.OrderedDict": _as_dict,
    "collections.defaultdict": _as_dict,
    "collections.Counter": _as_dict,
    "collections.deque": _as_list,
    "_codecs.encode": _as_bytes,
    "copyreg._reconstructor": _stand_in,
    "copy_reg._reconstructor": _stand_in,
}
"""Replacements for functions that a pickle calls to build plain containers."""
