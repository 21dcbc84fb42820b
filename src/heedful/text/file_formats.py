"""
Text sources: supported formats, and names for the parts of a file.

::

    train.en           every line; files with suffixes other than those below are read like this,
                       except tables and documents (.xlsx, .json, .docx, …), which are refused
    pairs.tsv:2        column 2, counted from 1; tabs separate columns, and nothing is quoted
    pairs.tsv:fr       the column that the first line calls “fr”
    pairs.csv:fr       a column of CSV, whose cells may be quoted
    pairs.jsonl:fr     a field of each line's object; “meta.fr” is a field of a field
    memory.tmx:en      the English segments of a translation memory
    memory.tmx:en+de   the same, but only from the units that also have German
    set-src.en.sgm     the segments of a WMT test set
    set.xml:src        the source of a newer test set; other sides: ref, ref:A, hyp:online-A

Each may be compressed (``pairs.tsv.gz:2``, see `heedful.text.compression`). The name of an existing
file is taken literally.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path
from typing import Literal

from heedful.errors import TextError
from heedful.text import tmx, wmt
from heedful.text.compression import SUFFIXES, without_compression
from heedful.text.lines import decode_lines, open_text
from heedful.text.no_text import ENDINGS, refuse_other_files
from heedful.text.reading.characters import read_source_characters, read_target_characters
from heedful.text.skipped_rows import SkippedRows
from heedful.text.tables import read_csv, read_jsonl, read_tsv

_Rows = Iterator[tuple[str, ...]]
# The name of a column or of a nested field that is a language's code.
_LANGUAGE = re.compile(r"(?:.*\.)?([a-z]{2}(?:[-_][A-Za-z]{2,4})?)")


@dataclass(frozen=True)
class FileFormat:
    """A format of text files; `example` is empty if a file holds a single text."""

    endings: tuple[str, ...]
    read: Callable[[BufferedReader, str, Sequence[str], SkippedRows], _Rows]
    """Reads parts of a file; the second argument is the file's name."""
    what: str = "nothing"
    """Description of a part, for messages."""
    example: str = ""
    part: str = ""
    """Pattern that a part must match."""
    is_table: bool = False
    """Whether parts are columns, so that their names may be languages."""


def _by_lines(read: Callable[..., _Rows]) -> Callable[..., _Rows]:
    """Convert a reader of lines to a reader of bytes."""
    return lambda stream, name, parts, skipped: read(
        decode_lines(stream, name), name, parts, skipped
    )


def _read_sgm(stream: BufferedReader, name: str, *_: object) -> _Rows:
    """Read the segments of an SGM file."""
    return ((text,) for _, text in wmt.read_segments(decode_lines(stream, name), name))


def _read_plain(stream: BufferedReader, name: str, *_: object) -> _Rows:
    """Read every line."""
    return zip(decode_lines(stream, name))


_COLUMN, _ANY = "a column, by its name or its number from 1", r"(?!0*$)[^\r\n]{1,200}"
_SIDE = "a side of the test set (src, ref or hyp)"
FORMATS = (
    FileFormat((".tsv",), _by_lines(read_tsv), _COLUMN, "1", _ANY, True),
    FileFormat((".csv",), _by_lines(read_csv), _COLUMN, "en", _ANY, True),
    FileFormat((".jsonl", ".ndjson"), _by_lines(read_jsonl), "a field", "en", _ANY, True),
    FileFormat((".tmx",), tmx.read_units, "a language", "en", r"[\w-]+(\+[\w-]+)*"),
    FileFormat((".xml",), wmt.read_sides, _SIDE, "src", r"src|(ref|hyp)(:.+)?"),
    FileFormat((".sgm", ".sgml"), _read_sgm),
)
"""The kinds of files that are not plain lines."""
_PLAIN = FileFormat((), _read_plain)
_BY_ENDING = {ending: kind for kind in FORMATS for ending in kind.endings}

# Refused endings are included, so that the message about “pairs.xlsx:en” names the file.
_NAME_AND_PART = re.compile(
    "(.+?(?:{})(?:{})?):(.*)".format(
        *("|".join(map(re.escape, group)) for group in ([*_BY_ENDING, *ENDINGS], SUFFIXES))
    ),
    re.IGNORECASE | re.DOTALL,
)
_READERS = {"source": read_source_characters, "target": read_target_characters}


@dataclass(frozen=True)
class TextSource:  # numpydoc ignore=PR02
    """
    A text file, or one text in a file that holds several.

    Raises `TextError` if the format needs a part but none is named, or if a part is named but the
    file is one text.
    """

    path: Path
    """The file."""
    part: str = ""
    """A column, a field, a language or a side; empty if the file is one text."""
    tag: str = ""
    """A language tag such as “>>de<<” to prepend to every line; the file does not contain it."""
    read_as: Literal["", "source", "target"] = ""
    """The side whose rules normalize the characters; empty for no change."""

    def __post_init__(self) -> None:
        refuse_other_files(self.path, self.part)
        kind = self.kind
        if re.fullmatch(kind.part, self.part):
            return
        if not kind.example:
            raise TextError(
                f"{self.path} must be named without a column, field, language or side, because "
                f"the whole file is one text; remove “:{self.part}”."
            )
        actual = f"got “{self.part}”" if self.part else "got none"
        raise TextError(
            f"{self.path} must be named with {kind.what}, but {actual}; write for example "
            f"{self.path}:{kind.example}, or rename the file if it is plain text."
        )

    def __str__(self) -> str:
        return f"{self.path}:{self.part}" if self.part else str(self.path)

    def marked(self, line: str) -> str:
        """Normalize the characters of a line if requested, and prepend the tag."""
        if self.read_as:
            line = _READERS[self.read_as](line)
        return f"{self.tag} {line}" if self.tag else line

    @property
    def ending(self) -> str:
        """Suffix of the file in lower case, without a compression suffix."""
        return without_compression(self.path).suffix.lower()

    @property
    def kind(self) -> FileFormat:
        """The format of the file."""
        return _BY_ENDING.get(self.ending, _PLAIN)

    @property
    def language(self) -> str:
        """Part of the name that may be a language code, such as a suffix; empty if none is."""
        if self.ending == ".tmx":
            return self.part.partition("+")[0]
        if self.kind.is_table:
            named = _LANGUAGE.fullmatch(self.part)
            return named[1] if named else ""
        if self.kind.example:
            return ""
        path = without_compression(self.path)
        if self.ending in (".sgm", ".sgml"):
            path = path.with_suffix("")
        return path.suffix.removeprefix(".")


def split_name(name: str) -> tuple[str, str]:
    """
    Split a name into the name of a file and the name of its part.

    The part, such as ``2``, is empty if none is named, or if a file with the whole name exists.

    A colon separates a part only after a suffix of a format that has parts.
    """
    match = _NAME_AND_PART.fullmatch(name)
    if match is None or os.path.exists(name):
        return name, ""
    return match[1], match[2]


def same_file(first: TextSource, second: TextSource) -> bool:
    """Whether two texts are parts of one file; then `read_rows` can read both in one pass."""
    return bool(first.part and second.part) and first.path.resolve() == second.path.resolve()


def restrict_to(first: TextSource, second: TextSource) -> TextSource:
    """Restrict a text of a TMX file to the units that also have a second language."""
    if first.ending == ".tmx" and same_file(first, second):
        return replace(first, part=tmx.join_parts(first.part, second.part))
    return first


def read_rows(
    path: Path, parts: Sequence[str], skipped: SkippedRows | None = None
) -> Iterator[tuple[str, ...]]:
    """
    Read parts of a file side by side.

    `skipped`: counts the rows without text in one of the parts, which are left out.

    All formats are streamed.

    Raises `TextError` if the file cannot be read, contradicts its suffix, or lacks a part.
    """
    kind = TextSource(path, parts[0]).kind
    with open_text(path) as stream:
        yield from kind.read(stream, str(path), parts, skipped or SkippedRows())


def segment_numbers(text: TextSource) -> list[tuple[str, str]] | None:
    """
    Read the document and the segment number of each line of a test set.

    Returns None if the file lacks them, or if two lines have the same document and number.
    """
    name, ending = str(text.path), text.ending
    if ending not in (".xml", ".sgm", ".sgml"):
        return None
    with open_text(text.path) as stream:
        if ending == ".xml":
            numbers = list(wmt.read_numbers(stream, name))
        else:
            segments = wmt.read_segments(decode_lines(stream, name), name)
            numbers = [number for number, _ in segments]
    return numbers if len(set(numbers)) == len(numbers) else None
