"""
Parameters of EVALB, the program that scores constituency trees, and their files.

::

    DELETE_LABEL TOP
    EQ_LABEL ADVP PRT
    CUTOFF_LEN 40
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heedful.errors import TextError
from heedful.text.lines import plain_lines

Pairs = frozenset[frozenset[str]]


@dataclass(frozen=True)
class EvalbParameters:
    """What is scored; the defaults are those of COLLINS.prm."""

    delete_labels: frozenset[str] = frozenset(("TOP", "-NONE-", ",", ":", "``", "''", "."))
    """Words with these tags are left out, and phrases with these labels, but not their words."""
    delete_words: frozenset[str] = frozenset()
    """Words that are left out whatever their tag; EVALB's successors have this."""
    delete_labels_for_length: frozenset[str] = frozenset(("-NONE-",))
    """Tags of the words that do not count for the length of a sentence."""
    quote_labels: frozenset[str] = frozenset()
    """
    Tags of quotation marks and apostrophes. If only one side's tag is deleted, that word is kept if
    the lengths would differ otherwise.
    """
    equivalent_labels: Pairs = frozenset((frozenset(("ADVP", "PRT")),))
    """Pairs of labels, or of tags, that count as equal."""
    equivalent_words: Pairs = frozenset()
    """Pairs of words that count as equal."""
    labeled: bool = True
    """Whether the labels of phrases must be equal, and not only their words."""
    cutoff: int = 40
    """Words of the longest sentence in the second summary."""
    max_error: int = 10
    """EVALB stops at the second error sentence after this many."""

    def same_label(self, first: str, second: str) -> bool:
        """Return whether two labels, or two tags, count as equal."""
        return first == second or frozenset((first, second)) in self.equivalent_labels

    def same_word(self, first: str, second: str) -> bool:
        """Return whether two words count as equal."""
        return first == second or frozenset((first, second)) in self.equivalent_words

    def deletes_phrase(self, label: str) -> bool:
        """Return whether phrases with this label are left out."""
        return any(self.same_label(label, deleted) for deleted in self.delete_labels)

    def length(self, tags: tuple[str, ...]) -> int:
        """Count the words of a sentence for the limit on its length."""
        return sum(tag not in self.delete_labels_for_length for tag in tags)


COLLINS = EvalbParameters()
"""The parameters of published scores."""


def read_parameters(path: Path) -> EvalbParameters:
    """
    Read a .prm file.

    As in EVALB, all lists begin empty: a label that the file does not delete is not deleted. DEBUG
    is accepted and ignored.

    Raises `TextError` with file and line for an unknown parameter or a wrong value.
    """
    reading = _Reading(str(path))
    for number, line in enumerate(plain_lines(Path(path)), start=1):
        # EVALB ignores lines of less than three characters.
        if len(line.strip()) > 2 and not line.startswith("#"):
            reading.read(number, line.split())
    return reading.parameters()


@dataclass
class _Reading:
    """A .prm file that is being read."""

    name: str
    sets: dict[str, set[str]] = field(default_factory=dict)
    pairs: dict[str, set[frozenset[str]]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)

    def read(self, line: int, parts: list[str]) -> None:
        """Read a line."""
        key, *values = parts
        reader = self._readers().get(key)
        if reader is None:
            known = ", ".join(self._readers())
            raise self._error(line, f"the first word must be a parameter ({known})", key)
        reader(line, key, values)

    def parameters(self) -> EvalbParameters:
        """Build the parameters."""
        numbers = self.numbers
        values: dict[str, Any] = {
            **{name: frozenset(self.sets.get(key, ())) for key, name in _SETS.items()},
            **{name: frozenset(self.pairs.get(key, ())) for key, name in _PAIRS.items()},
            "labeled": numbers.get("LABELED", 1) != 0,
            "cutoff": numbers.get("CUTOFF_LEN", 40),
            "max_error": numbers.get("MAX_ERROR", 10),
        }
        return EvalbParameters(**values)

    def _readers(self) -> dict[str, Callable[[int, str, list[str]], None]]:
        """List the parameters, each with the function that reads its values."""
        return {
            **dict.fromkeys(_SETS, self._read_set),
            **dict.fromkeys(_PAIRS, self._read_pair),
            **dict.fromkeys(("LABELED", "CUTOFF_LEN", "MAX_ERROR", "DEBUG"), self._read_number),
        }

    def _read_set(self, line: int, key: str, values: list[str]) -> None:
        """Read one value of a set."""
        if len(values) != 1:
            raise self._error(line, f"{key} must have one value", " ".join(values))
        self.sets.setdefault(key, set()).add(values[0])

    def _read_pair(self, line: int, key: str, values: list[str]) -> None:
        """Read a pair that counts as equal."""
        if len(values) != 2:
            raise self._error(line, f"{key} must have two values", " ".join(values))
        self.pairs.setdefault(key, set()).add(frozenset(values))

    def _read_number(self, line: int, key: str, values: list[str]) -> None:
        """Read a number; the last one counts."""
        value = " ".join(values)
        most = 1 if key == "LABELED" else None
        is_number = value.isascii() and value.isdecimal() and len(value) <= _DIGITS
        if not is_number or (most and int(value) > most):
            wanted = "0 or 1" if most else f"a whole number of at most {_DIGITS} digits"
            raise self._error(line, f"{key} must be {wanted}", value)
        self.numbers[key] = int(value)

    def _error(self, line: int, must: str, text: str) -> TextError:
        """Build the error for a line with unexpected text."""
        text = f"“{text[:40]}”" if text else "nothing"
        return TextError(f"{self.name}, line {line}: {must}, but got {text}; correct the file.")


_SETS = {
    "DELETE_LABEL": "delete_labels",
    "DELETE_LABEL_FOR_LENGTH": "delete_labels_for_length",
    "DELETE_WORD": "delete_words",
    "QUOTE_LABEL": "quote_labels",
}
# Python refuses to read numbers of some thousand digits.
_DIGITS = 9
_PAIRS = {"EQ_LABEL": "equivalent_labels", "EQ_WORD": "equivalent_words"}
