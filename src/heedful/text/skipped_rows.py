"""
Rows without text, for example with too few columns: skipped and counted, or refused.

Training reads both sides of a row at once, so a row can be left out of both. If line n of one file
belongs to line n of another, a skipped row would shift all later rows, so it is an error.
"""

from collections.abc import Iterator

from heedful.errors import TextError

_SHOWN = 3


class SkippedRows:
    """The rows that were left out while files were read."""

    def __init__(self, *, refuse: bool = False) -> None:
        self._refuses = refuse
        self._counts: dict[str, int] = {}
        self._first: dict[str, list[str]] = {}
        self._remarks: dict[tuple[str, str], None] = {}

    def add(self, name: str, row: int | str, reason: str) -> None:
        """Count a skipped row of a file, or raise `TextError` if every row must have text."""
        place = f"line {row:,}" if isinstance(row, int) else row
        if self._refuses:
            raise TextError(
                f"{name} must have text in every row, because other files are aligned with it, but "
                f"{place} {reason}; repair this row, or remove it from all files."
            )
        self._counts[name] = self._counts.get(name, 0) + 1
        shown = self._first.setdefault(name, [])
        if len(shown) < _SHOWN:
            shown.append(f"{place} {reason}")

    def remark(self, name: str, text: str) -> None:
        """Record an assumption about how a file must be read."""
        self._remarks[name, text] = None

    def notes(self) -> Iterator[str]:
        """Report how each file was read, and how many rows were skipped and why."""
        for name, text in self._remarks:
            yield f"{name}: {text}"
        for name, count in self._counts.items():
            rows = "1 row was" if count == 1 else f"{count:,} rows were"
            shown = "; ".join(self._first[name]) + ("; …" if count > _SHOWN else "")
            yield f"{name}: {rows} skipped ({shown})"
