"""
Parameters of EVALB, the program that scores constituency trees, and their files.

::

    DELETE_LABEL TOP
    EQ_LABEL ADVP PRT
    CUTOFF_LEN 40
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import TextError
from heedful.text.lines import plain_lines

Pairs = frozenset[frozenset[str]]


@dataclass(frozen=True)
class EvalbParameters:
    """The rules of the score; the defaults are the parameters of COLLINS.prm."""

    delete_labels: frozenset[str] = frozenset(("TOP", "-NONE-", ",", ":", "``", "''", "."))
    """Tags of words, and labels of phrases, to leave out; the words of such phrases stay."""
    delete_words: frozenset[str] = frozenset()
    """Words that are left out whatever their tags; only successors of EVALB have this parameter."""
    delete_labels_for_length: frozenset[str] = frozenset(("-NONE-",))
    """Tags of the words that do not count toward the length of a sentence."""
    quote_labels: frozenset[str] = frozenset()
    """
    Tags of quotation marks and apostrophes. If the tag of such a word is deleted on only one side
    and the sentence lengths would differ, the word is kept.
    """
    equivalent_labels: Pairs = frozenset((frozenset(("ADVP", "PRT")),))
    """Pairs of labels, or of tags, that count as equal."""
    equivalent_words: Pairs = frozenset()
    """Pairs of words that count as equal."""
    labeled: bool = True
    """Whether phrases must have equal labels, in addition to equal spans."""
    cutoff: int = 40
    """Maximum length of the sentences in the second summary, in words."""
    max_error: int = 10
    """EVALB stops at error number `max_error` + 2."""

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
        """Count the words of a sentence for the length limit."""
        return sum(tag not in self.delete_labels_for_length for tag in tags)


COLLINS = EvalbParameters()
"""The parameters with which published scores are computed."""


def read_parameters(path: Path) -> EvalbParameters:
    """
    Read a .prm file.

    As in EVALB, all lists are initially empty: only labels that the file deletes are deleted. DEBUG
    is accepted and ignored.

    Raises `TextError` with file and line for an unknown parameter or an invalid value.
    """
    lists: dict[str, set[Any]] = {name: set() for name in (_SETS | _PAIRS).values()}
    numbers: dict[str, int] = {}
    for number, line in enumerate(plain_lines(Path(path)), start=1):
        # EVALB ignores lines of fewer than three characters.
        if len(line.strip()) <= 2 or line.startswith("#"):
            continue
        key, *values = line.split()
        if must := _violated_rule(key, values):
            text = " ".join(values)[:40] if key in _PARAMETERS else key[:40]
            shown = f"“{text}”" if text else "nothing"
            raise TextError(f"{path}, line {number}: {must}, but got {shown}; correct the file.")
        if key in _SETS:
            lists[_SETS[key]].add(values[0])
        elif key in _PAIRS:
            lists[_PAIRS[key]].add(frozenset(values))
        else:  # if a parameter is repeated, its last number is used
            numbers[key] = int(values[0])
    return EvalbParameters(
        **{name: frozenset(values) for name, values in lists.items()},
        labeled=numbers.get("LABELED", 1) != 0,
        cutoff=numbers.get("CUTOFF_LEN", 40),
        max_error=numbers.get("MAX_ERROR", 10),
    )


def _violated_rule(key: str, values: list[str]) -> str:
    """Return the rule that a line violates, or an empty string if the line is valid."""
    if key not in _PARAMETERS:
        return f"the first word must be a parameter ({', '.join(_PARAMETERS)})"
    if key in _SETS:
        return "" if len(values) == 1 else f"{key} must have one value"
    if key in _PAIRS:
        return "" if len(values) == 2 else f"{key} must have two values"
    text = " ".join(values)
    is_number = text.isascii() and text.isdecimal() and len(text) <= _DIGITS
    if key == "LABELED":
        return "" if is_number and int(text) <= 1 else f"{key} must be 0 or 1"
    return "" if is_number else f"{key} must be a whole number of at most {_DIGITS} digits"


_SETS = {
    "DELETE_LABEL": "delete_labels",
    "DELETE_LABEL_FOR_LENGTH": "delete_labels_for_length",
    "DELETE_WORD": "delete_words",
    "QUOTE_LABEL": "quote_labels",
}
# Maximum digits, because Python refuses to read numbers with several thousand digits.
_DIGITS = 9
_PAIRS = {"EQ_LABEL": "equivalent_labels", "EQ_WORD": "equivalent_words"}
_PARAMETERS = (*_SETS, *_PAIRS, "LABELED", "CUTOFF_LEN", "MAX_ERROR", "DEBUG")
