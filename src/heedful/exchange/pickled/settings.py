"""Pickled settings objects as plain dictionaries."""

from typing import Any

from heedful.errors import ExchangeError
from heedful.exchange.pickled.placeholders import OpaqueObject

_DEEPEST = 8
_MOST = 100_000
WIDEST_BEAM, MOST_TOKENS = 201, 10_000
"""Exclusive upper limits of search settings; larger values could fill memory in parity checks."""


def settings_of(value: Any) -> dict[str, Any]:
    """
    Read settings stored with weights: numbers, text, lists and dictionaries.

    Other values become None.

    Interpolations of omegaconf, such as “${model.width}”, stay text. Raises `ExchangeError` if
    `value` holds no settings, or more than any toolkit has.
    """
    left = [_MOST]
    plain = _plain(value, 0, left)
    if not isinstance(plain, dict):
        raise ExchangeError(
            "The settings of a checkpoint must be names and values, but got "
            f"{type(value).__name__}; it is not a checkpoint of a translation model."
        )
    return plain


def _plain(value: Any, depth: int, remaining: list[int]) -> Any:
    """Convert a value to plain values, with limits on their depth and number."""
    remaining[0] -= 1
    if remaining[0] < 0:
        raise ExchangeError(
            f"The settings of a checkpoint must be at most {_MOST:,} values, but there are more; "
            "the file is damaged or malicious."
        )
    if depth > _DEEPEST:
        return None
    if isinstance(value, OpaqueObject):
        return _plain(_contents(value), depth, remaining)
    if isinstance(value, dict):
        return {
            key: _plain(inner, depth + 1, remaining)
            for key, inner in value.items()
            if isinstance(key, str) and not key.startswith("__")
        }
    if isinstance(value, list | tuple):
        return [_plain(inner, depth + 1, remaining) for inner in value]
    return value if isinstance(value, str | int | float | bool) else None


def _contents(value: OpaqueObject) -> Any:
    """Return the attributes of an opaque object."""
    if "_content" in value.state:  # a dictionary or list of omegaconf
        return value.state["_content"]
    if "_val" in value.state:  # one value of omegaconf
        return value.state["_val"]
    if value.state:
        return value.state
    if value.entries:  # an object of a class derived from dict
        return dict(value.entries) if _are_pairs(value.entries) else value.entries
    # an enumeration member has its value as its argument
    return value.arguments[0] if len(value.arguments) == 1 else None


def _are_pairs(entries: list[Any]) -> bool:
    """Return whether a list consists of key-value pairs."""
    return all(isinstance(entry, tuple) and len(entry) == 2 for entry in entries)
