"""A safe YAML reader, which returns only plain values and limits their number."""

import re
from itertools import accumulate
from pathlib import Path
from typing import Any

from heedful.errors import ExchangeError
from heedful.exchange.extras import import_extra
from heedful.files import read_within

# Limits far above any settings file. Without them, a small file could expand to any size by
# repeating one anchor many times.
_LARGEST = 1 << 15
_MOST = 5_000
_DEEPEST = 32
_BRACKETS = {"[": 1, "{": 1, "]": -1, "}": -1}
_TAG = "tag:yaml.org,2002:"
_NUMBER = re.compile(r"[-+]?(0b[01]+|0x[0-9a-fA-F]+|[0-9]+)")
_LONGEST_NUMBER = 24


def read_yaml(file: Path, purpose: str) -> Any:
    """Read a YAML file; raise `ExchangeError` if it is damaged or malicious."""
    yaml = import_extra("yaml", purpose)
    try:
        text = read_within(file, _LARGEST).decode()
        # PyYAML needs time quadratic in the depth, so the depth is limited before parsing.
        open_at_once = accumulate((_BRACKETS.get(sign, 0) for sign in text), initial=0)
        if max(open_at_once) > _DEEPEST:
            raise ValueError(f"more than {_DEEPEST} brackets are open at once")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except OSError as error:
        raise ExchangeError(
            f"{file} must be readable, but is not: {error.strerror}; give the folder that the "
            "training wrote."
        ) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _wrong(file, " ".join(str(error).split())[:200]) from error
    return None if node is None else _Values(file).value(node, 0)


class _Values:
    """A converter from YAML nodes to values; its limit counts every use of an anchor."""

    def __init__(self, file: Path) -> None:
        self._file, self._left = file, _MOST

    def value(self, node: Any, depth: int) -> Any:
        """Convert a node to a number, text, list or dictionary."""
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            raise _wrong(
                self._file, f"it has more than {_MOST:,} values or {_DEEPEST} nested levels"
            )
        if node.id == "mapping":
            return self._mapping(node, depth)
        if node.id == "sequence":
            return [self.value(inner, depth + 1) for inner in node.value]
        return self._scalar(node)

    def _mapping(self, node: Any, depth: int) -> dict[str, Any]:
        """Convert a mapping; its own keys override merged keys."""
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key, inner in node.value:
            if key.tag == f"{_TAG}merge":
                sources = inner.value if inner.id == "sequence" else [inner]
                for source in reversed(sources):
                    part = self.value(source, depth + 1)
                    merged |= part if isinstance(part, dict) else {}
            elif key.id == "scalar":
                own[str(key.value)] = self.value(inner, depth + 1)
        return merged | own

    def _scalar(self, node: Any) -> Any:
        """Convert a scalar; a number in an unusual form, such as 1:30:00, stays text."""
        kind, text = node.tag.removeprefix(_TAG), node.value
        digits = text.replace("_", "")
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() in ("yes", "true", "on")
        if kind == "int" and len(digits) <= _LONGEST_NUMBER and _NUMBER.fullmatch(digits):
            return int(digits) if digits.lstrip("+-").isdigit() else int(digits, 0)
        if kind == "float":
            try:
                return float(digits.replace(".inf", "inf").replace(".nan", "nan"))
            except ValueError:
                return text
        if kind in ("int", "str", "timestamp", "value"):
            return text
        raise _wrong(self._file, f"it contains the tag {ascii(node.tag)[1:-1][:60]}")


def _wrong(file: Path, reason: str) -> ExchangeError:
    """Build the error for a file that cannot be read."""
    return ExchangeError(f"{file} must be plain YAML, but is not ({reason}); copy it again.")
