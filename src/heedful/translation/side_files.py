"""Side files: one line for each line of the input."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from heedful.errors import TextError
from heedful.text.lines import plain_lines

# Files whose lines hold entries separated by tabs; the names are those of `Translator.translate`.
_SEPARATED = ("force_phrases", "avoid_phrases")


def zip_side_files(
    lines: Iterable[str], name: str, side_files: Mapping[str, Path]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """
    Iterate over lines together with the lines of side files.

    One line of each file is in memory at a time. A difference in length is reported only at the end
    of the shorter file.

    Raises `TextError` if a file has fewer or more lines than the input.
    """
    files = {what: plain_lines(path) for what, path in side_files.items()}
    count = 0
    for line in lines:
        entries = {}
        for what, file in files.items():
            entry = next(file, None)
            if entry is None:
                raise _unequal(name, "more", side_files[what], f"{count:,}")
            entries[what] = entry.split("\t") if what in _SEPARATED else entry
        yield line, entries
        count += 1
    for what, file in files.items():
        if more := sum(1 for _ in file):
            raise _unequal(name, f"{count:,}", side_files[what], f"{count + more:,}")


def _unequal(name: str, lines: str, path: Path, others: str) -> TextError:
    """Build the error with the names and line counts of both files."""
    return TextError(
        f"{path} must have one line for each line of {name}, but {path} has {others} and {name} "
        f"has {lines}; leave a line empty if it has no constraint."
    )
