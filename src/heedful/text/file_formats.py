"""
Text sources: supported formats, and names for the parts of a file.

::

    train.en           every line; so is every file whose ending is not among these, but
                       tables and documents (.csv, .json, .docx, …) are refused
    pairs.tsv:2        column 2, counted from 1; tabs part columns, and nothing is quoted
    memory.tmx:en      the English of a translation memory
    memory.tmx:en+de   the same, but only of the units that have German too
    set-src.en.sgm     the segments of a WMT test set
    set.xml:src        the source of a newer one; ref, ref:A and hyp:online-A are its other sides

Each may be compressed (``pairs.tsv.gz:2``). A name that exists as it stands is taken literally.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from heedful.errors import TextError
from heedful.text import tmx, wmt
from heedful.text.lines import decode_lines, open_text, without_compression
from heedful.text.no_text import ENDINGS, refuse_other_files
from heedful.text.reading.characters import read_source_characters, read_target_characters

# Tables too, so that what is said of “pairs.csv:en” is said of the file.
_NAME_AND_PART = re.compile(
    r"(.+?\.(?:tsv|tmx|xml|sgml?|" + "|".join(ending[1:] for ending in ENDINGS) + ")"
    r"(?:\.gz|\.xz)?):(.*)",
    re.IGNORECASE | re.DOTALL,
)
_READERS = {"source": read_source_characters, "target": read_target_characters}
# For each format that has parts: how one is written, what it is, and an example.
_PARTS = {
    ".tsv": (r"[1-9][0-9]{0,5}", "a column, counted from 1", "1"),
    ".tmx": (r"[\w-]+(\+[\w-]+)*", "a language", "en"),
    ".xml": (r"src|(ref|hyp)(:.+)?", "a side of the test set (src, ref or hyp)", "src"),
}


@dataclass(frozen=True)
class TextSource:  # numpydoc ignore=PR02
    """
    A text file, or one text in a file of several.

    Raises `TextError` if a file of this format needs a part and has none, or the other way round.
    """

    path: Path
    """The file."""
    part: str = ""
    """A column, a language or a side; empty if the file is one text."""
    tag: str = ""
    """A language tag that is put before every line, such as “>>de<<”; it is not in the file."""
    read_as: Literal["", "source", "target"] = ""
    """The side as which characters of its lines are read; as they are if empty."""

    def __post_init__(self) -> None:
        refuse_other_files(self.path, self.part)
        pattern, what, example = _PARTS.get(self.ending, ("", "nothing", ""))
        if re.fullmatch(pattern, self.part):
            return
        if self.ending not in _PARTS:
            raise TextError(
                f"{self.path} must be named without a part, for the whole file is one text, but it "
                f"came with “{self.part}”; take that away."
            )
        came = f"it came with “{self.part}”" if self.part else "it came without"
        raise TextError(
            f"{self.path} must be named with {what}, but {came}; write for example "
            f"{self.path}:{example}, or rename the file if it is plain text."
        )

    def __str__(self) -> str:
        return f"{self.path}:{self.part}" if self.part else str(self.path)

    def marked(self, line: str) -> str:
        """Read the characters of a line, if so wanted, and prepend the tag."""
        if self.read_as:
            line = _READERS[self.read_as](line)
        return f"{self.tag} {line}" if self.tag else line

    @property
    def ending(self) -> str:
        """Suffix of the file without that of compression, in lower case."""
        return without_compression(self.path).suffix.lower()

    @property
    def language(self) -> str:
        """Language code from the name; empty if it has none."""
        if self.ending == ".tmx":
            return self.part.partition("+")[0]
        if self.ending in _PARTS:
            return ""
        path = without_compression(self.path)
        if self.ending in (".sgm", ".sgml"):
            path = path.with_suffix("")
        return path.suffix.removeprefix(".")


def split_name(name: str) -> tuple[str, str]:
    """
    Split a name into the file and the part of it.

    `part`: the part, ``2``; empty if there is none, or if a file has the whole name.

    A colon separates a part only after a suffix of a format that has parts.
    """
    found = _NAME_AND_PART.fullmatch(name)
    if found is None or os.path.exists(name):
        return name, ""
    return found[1], found[2]


def same_file(first: TextSource, second: TextSource) -> bool:
    """Whether two texts are parts of one file; then `read_rows` can read both in one pass."""
    return bool(first.part and second.part) and first.path.resolve() == second.path.resolve()


def restricted(first: TextSource, second: TextSource) -> TextSource:
    """Restrict a text to the units that another text of the same file has too."""
    if first.ending == ".tmx" and same_file(first, second):
        return replace(first, part=tmx.join_parts(first.part, second.part))
    return first


def read_rows(path: Path, parts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """
    Read parts of a file side by side.

    Streams: no format is held in memory as a whole.

    Raises `TextError` if the file cannot be read, is not what its ending says, or does not hold a
    part.
    """
    name, ending = str(path), TextSource(path, parts[0]).ending
    with open_text(path) as stream:
        if ending == ".tsv":
            yield from _columns(decode_lines(stream, name), name, [int(part) for part in parts])
        elif ending == ".tmx":
            yield from tmx.read_units(stream, name, parts)
        elif ending == ".xml":
            yield from wmt.read_sides(stream, name, parts)
        elif ending in (".sgm", ".sgml"):
            yield from zip(wmt.read_segments(decode_lines(stream, name), name))
        else:
            yield from zip(decode_lines(stream, name))


def segment_numbers(text: TextSource) -> list[tuple[str, str]] | None:
    """
    Read which segment of a test set each line is: its document and its number.

    Returns None for files that do not tell, and where two lines have the same.
    """
    name, ending = str(text.path), text.ending
    if ending not in (".xml", ".sgm", ".sgml"):
        return None
    with open_text(text.path) as stream:
        if ending == ".xml":
            numbers = list(wmt.read_numbers(stream, name))
        else:
            numbers = list(wmt.read_segment_numbers(decode_lines(stream, name), name))
    return numbers if len(set(numbers)) == len(numbers) else None


def _columns(lines: Iterator[str], name: str, numbers: Sequence[int]) -> Iterator[tuple[str, ...]]:
    """Select columns of tab-separated lines."""
    most = max(numbers)
    for count, line in enumerate(lines, start=1):
        columns = line.split("\t", most)
        if len(columns) < most:
            raise TextError(
                f"{name} must have a column {most} in every line, but line {count} has "
                f"{len(columns)}; name another column or repair the line."
            )
        yield tuple(columns[number - 1] for number in numbers)
