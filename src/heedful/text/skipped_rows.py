"""
Rows without text, such as one with a column too few: skipped and counted, or refused.

Training reads both sides of a row at once, so a row can be left out of both. Where line n of one
file belongs to line n of another, leaving one out would shift all that follow: there it is an
error.
"""

from collections.abc import Iterator

from heedful.errors import TextError

_SHOWN = 3


class SkippedRows:
    """The rows that one reading of some files left out."""

    def __init__(self, *, refuse: bool = False) -> None:
        self._refuses = refuse
        self._counts: dict[str, int] = {}
        self._first: dict[str, list[str]] = {}
        self._remarks: dict[tuple[str, str], None] = {}

    def add(self, name: str, row: int | str, reason: str) -> None:
        """Count a row of a file, or raise `TextError` if none may be left out."""
        place = f"line {row:,}" if isinstance(row, int) else row
        if self._refuses:
            raise TextError(
                f"{name} must have text in every row, because other files are aligned with it, but "
                f"{place} {reason}; repair or remove it in all of them."
            )
        self._counts[name] = self._counts.get(name, 0) + 1
        shown = self._first.setdefault(name, [])
        if len(shown) < _SHOWN:
            shown.append(f"{place} {reason}")

    def remark(self, name: str, text: str) -> None:
        """Record how a file is read, where that was not certain."""
        self._remarks[name, text] = None

    def notes(self) -> Iterator[str]:
        """Say for each file how it was read, how many rows were skipped, and why the first ones."""
        for name, text in self._remarks:
            yield f"{name}: {text}"
        for name, count in self._counts.items():
            rows = "1 row was" if count == 1 else f"{count:,} rows were"
            shown = "; ".join(self._first[name]) + ("; …" if count > _SHOWN else "")
            yield f"{name}: {rows} skipped ({shown})"
