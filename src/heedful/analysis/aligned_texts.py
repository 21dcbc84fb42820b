"""
Texts aligned by line with another text: references, other systems, sources.

Line n of one text belongs to line n of the other. The segments of WMT's test sets have numbers, so
files of the same test set are aligned by number; the order of their documents may differ. A test
set in XML may lack references for some segments; a missing reference is None, and a line without
any reference is not scored.
"""

from collections.abc import Sequence
from typing import TypeVar

from heedful.errors import TextError
from heedful.evaluation.line_metrics import References
from heedful.text.corpus import read_lines
from heedful.text.file_formats import TextSource, segment_numbers
from heedful.text.skipped_rows import SkippedRows

_Item = TypeVar("_Item")


class AlignedTexts:
    """
    A text that other texts must match line by line.

    `role`: name of the text in messages.

    Raises `TextError` if the text is empty or cannot be read.
    """

    def __init__(self, text: TextSource, role: str) -> None:
        self.text, self.role = text, role
        self.lines = _read(text)
        self._numbers = segment_numbers(text) or []

    def read(self, text: TextSource, role: str) -> list[str]:
        """Read another text in the order of this one; raises `TextError` if lines do not match."""
        in_order = self._in_order(text, role)
        lines = [line for line in in_order if line is not None]
        if len(lines) < len(in_order):
            raise _lacks(text, self.text, self._numbers[in_order.index(None)])
        return lines

    def read_reference(self, text: TextSource) -> list[str | None]:
        """Read a reference in the order of this text; raises `TextError` if all lines are empty."""
        lines = self._in_order(text, "reference")
        if text.ending == ".xml":
            lines = [line or None for line in lines]
        if not any(line and line.strip() for line in lines):
            raise TextError(
                f"A reference must contain text, but all {len(lines):,} lines of {text} are empty; "
                "name the file with the reference translations."
            )
        return lines

    def _in_order(self, text: TextSource, role: str) -> list[str | None]:
        """Read another text in the order of this one; None for a missing segment."""
        lines = _read(text)
        is_other = text.path.resolve() != self.text.path.resolve()
        numbers = segment_numbers(text) if self._numbers and is_other else None
        if numbers is not None:
            by_number = dict(zip(numbers, lines, strict=True))
            known = set(self._numbers)
            for number in numbers:
                if number not in known:
                    raise _lacks(self.text, text, number)
            return [by_number.get(number) for number in self._numbers]
        if len(lines) != len(self.lines):
            raise TextError(
                f"{self.role} and {role} must have the same number of lines, but {self.text} has "
                f"{len(self.lines):,} and {text} has {len(lines):,}."
            )
        return [*lines]


def scored_lines(references: References) -> list[int]:
    """List the indices of the lines that have a reference."""
    return [
        number
        for number, line in enumerate(zip(*references, strict=True))
        if any(reference is not None for reference in line)
    ]


def select(items: Sequence[_Item], numbers: Sequence[int]) -> list[_Item]:
    """Select some of the lines of a text."""
    return [items[number] for number in numbers]


def unscored_note(scored: int, lines: int) -> str:
    """State how many lines are not scored; empty if all lines are scored."""
    if lines == scored:
        return ""
    return f"{lines - scored:,} of {lines:,} segments have no reference and are not scored"


def _read(text: TextSource) -> list[str]:
    """Read all lines of a text that must not be empty."""
    lines = list(read_lines(text, SkippedRows(refuse=True)))
    if not lines:
        raise TextError(f"{text} must have one sentence per line, but is empty.")
    return lines


def _lacks(text: TextSource, full_text: TextSource, number: tuple[str, str]) -> TextError:
    """Build the error for a segment that only one of two test sets has."""
    document, segment = number
    return TextError(
        f"{text} must have every segment of {full_text}, but lacks segment “{segment}” of the "
        f"document “{document}”; name files of the same test set."
    )
