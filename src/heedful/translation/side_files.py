"""Files that say something about each line of the input, read in step with it."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from heedful.errors import TextError
from heedful.text.lines import plain_lines

# How a line of each file is read; the names are those of `Translator.translate`.
_SEPARATED = ("force_phrases", "avoid_phrases")


def zip_side_files(
    lines: Iterable[str], name: str, side_files: Mapping[str, Path]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """
    Read each line together with what other files say about it.

    Parameters
    ----------
    lines : iterable of str
        The input; may be endless or slow.
    name : str
        What to call it in messages.
    side_files : mapping of str to Path
        Line-aligned files, by what they hold: ``target_prefix``, ``force_phrases`` or
        ``avoid_phrases``.

    Yields
    ------
    tuple of str and dict
        A line, and its entry of each file: a text for ``target_prefix``, for the others the
        phrases between tabs.

    Raises
    ------
    TextError
        If a file has fewer or more lines than the input.

    Notes
    -----
    One line of each is held at a time. A difference shows where the shorter one ends; the lines
    before it have been handed out by then.
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
    """Name both and their numbers of lines."""
    return TextError(
        f"{path} must have one line for each line of {name}, but {path} has {others} and {name} "
        f"has {lines}; leave a line empty where nothing is asked."
    )
