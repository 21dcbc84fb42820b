r"""
Tables whose columns are texts: tab-separated lines, CSV, and lines of JSON.

::

    pairs.tsv:2              the second of the columns between tabs; every line is a row
    pairs.tsv:fr             the column “fr” of the first line; nothing is quoted
    pairs.csv:fr             CSV as in RFC 4180: quotation marks, and line breaks between them
    pairs.csv:2              the second column; a first row of names such as “en,fr” is not text
    pairs.jsonl:meta.fr      the field “fr” of the field “meta” of each line's object

A row is skipped and counted if it lacks a column. Cells of CSV may be separated by semicolons or
tabs, as spreadsheets in some countries write them. The separator is the character that gives the
first rows the same number of cells, or the one that Excel's line ``sep=;`` names.
"""

import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from heedful.errors import TextError
from heedful.text.lines import LONGEST_LINE, on_one_line
from heedful.text.skipped_rows import SkippedRows

_LINE_BREAK = re.compile("[\r\n]")
# Names that people give to columns of sentence pairs: codes of languages, and kinds of content.
_HEADER = re.compile(
    r"|[a-z]{2}([-_][A-Za-z]{2,4})?|index|id|source|target|src|tgt|trg|ref|mt|text|sentence"
    r"|translation|reference|hypothesis|score|lang|source_text|target_text",
    re.IGNORECASE,
)
_EXCEL = re.compile('"?sep=([^"\\w\\s]|\t)"?', re.IGNORECASE)
_MARKS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_SAMPLE_LINES, _SAMPLE_CHARACTERS = 50, 1 << 16  # limits of the text that shows the separator
_SHOWN = 12
_MOST_LINES = 10_000  # maximum number of lines in a row

Row = tuple[int, Sequence[str] | str]
"""A row: the number of its first line, and its cells or the reason why they cannot be read."""


def read_tsv(
    lines: Iterable[str], name: str, parts: Sequence[str], skipped: SkippedRows
) -> Iterator[tuple[str, ...]]:
    """Read columns of tab-separated lines; if all are selected by number, every line is a row."""
    if all(part.isdecimal() for part in parts):
        most = min(max(map(int, parts)), sys.maxsize)
        rows = _with_note_on_header(lines, name, most, skipped)
        return _select(rows, name, [int(part) - 1 for part in parts], skipped)
    rows = ((number, line.split("\t")) for number, line in enumerate(lines, 1))
    return _select_named(rows, name, parts, skipped)


def read_csv(
    lines: Iterable[str], name: str, parts: Sequence[str], skipped: SkippedRows
) -> Iterator[tuple[str, ...]]:
    """Read columns of CSV; rows with more or fewer cells than the first are skipped."""
    rows = _even_rows(_csv_rows(lines, name, skipped))
    if not all(part.isdecimal() for part in parts):
        return _select_named(rows, name, parts, skipped)
    number, first = next(rows, (0, ()))
    if isinstance(first, str) or not all(map(_HEADER.fullmatch, first)):
        rows = chain([(number, first)], rows)
    elif first:
        skipped.remark(
            name, f"the first row is read as the names of columns ({', '.join(first)}), not as text"
        )
    return _select(rows, name, [int(part) - 1 for part in parts], skipped)


def read_jsonl(
    lines: Iterable[str], name: str, parts: Sequence[str], skipped: SkippedRows
) -> Iterator[tuple[str, ...]]:
    """Read fields of JSON objects, with one object per line."""
    fields: dict[str, None] = {}
    is_empty = is_first = True
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if is_first and line.lstrip().startswith("["):
            raise TextError(
                f"{name} must have one JSON object per line, but begins with a list; write one "
                "object per line, as `jq -c '.[]'` does."
            )
        is_first = False
        row = _json_object(line)
        if isinstance(row, str):
            skipped.add(name, number, row)
            continue
        if len(fields) < _SHOWN:
            fields |= dict.fromkeys(row)
        texts = [_field(row, part) for part in parts]
        missing = [part for part, text in zip(parts, texts, strict=True) if text is None]
        if missing:
            skipped.add(name, number, f"has no text in the field “{missing[0]}”")
            continue
        is_empty = False
        yield tuple(text or "" for text in texts)
    if is_empty:
        known = ", ".join(f"“{field}”" for field in fields)
        raise TextError(
            f"{name} must have an object with text in {_list_names(parts)}, but has none; "
            f"{f'the fields are {known}' if known else 'no line is a JSON object'}."
        )


def _even_rows(rows: Iterator[Row]) -> Iterator[Row]:
    """Replace rows of other widths with reasons to skip them; a text may have an unquoted comma."""
    width = 0
    for number, cells in rows:
        width = width or len(cells)
        if isinstance(cells, str) or len(cells) == width:
            yield number, cells
        else:
            yield number, f"has {len(cells)} cells, but the first row has {width}"


def _with_note_on_header(
    lines: Iterable[str], name: str, most: int, skipped: SkippedRows
) -> Iterator[Row]:
    """Split lines at tabs; note a first line that looks like the names of columns."""
    for number, line in enumerate(lines, 1):
        if number == 1 and "\t" in line and all(map(_HEADER.fullmatch, line.split("\t"))):
            names = ", ".join(line.split("\t"))
            skipped.remark(
                name,
                f"the first line looks like the names of columns ({names}) but is read as text; "
                "select columns by name to skip this line",
            )
        yield number, line.split("\t", most)


def _csv_rows(lines: Iterable[str], name: str, skipped: SkippedRows) -> Iterator[Row]:
    """Parse CSV; yields each row's first line number, and its cells or the reason for an error."""
    lines = iter(lines)
    sample: list[str] = []
    for line in lines:
        sample.append(line)
        if len(sample) == _SAMPLE_LINES or sum(map(len, sample)) > _SAMPLE_CHARACTERS:
            break
    excel = _EXCEL.fullmatch(sample[0]) if sample else None
    separator = excel[1] if excel else _separator(sample)
    if separator != ",":
        skipped.remark(name, f"cells are separated by {_MARKS.get(separator, separator)}")
    row_lines = _RowLines(chain(sample, lines), name)
    if excel:
        row_lines.begin()
        next(row_lines)
    # A cell may be as long as a line; the module's own limit is 131,072 characters.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    reader = csv.reader(row_lines, delimiter=separator, strict=True)
    while True:
        start = row_lines.begin()
        try:
            cells = next(reader, None)
        except csv.Error as error:
            # the file ended inside quotation marks
            if "unexpected end" in str(error):
                raise row_lines.endless() from None
            yield start, f"is not CSV ({error})"
            continue
        if cells is None:
            return
        if cells:  # an empty line is not a row
            yield start, cells


class _RowLines:
    """Lines with their line ends, for a reader of rows that may span several lines."""

    def __init__(self, lines: Iterator[str], name: str) -> None:
        self._lines, self._name = lines, name
        self._number = self._start = self._size = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._number += 1
        self._size += len(line)
        if self._size > LONGEST_LINE or self._number - self._start > _MOST_LINES:
            raise self.endless()
        return f"{line}\n"

    def begin(self) -> int:
        """Begin a row; returns the number of its first line."""
        self._start, self._size = self._number + 1, 0
        return self._start

    def endless(self) -> TextError:
        """Build the error for a quotation mark that is never closed."""
        return TextError(
            f"{self._name} must close every quotation mark, but one stays open in the row that "
            f"begins in line {self._start:,}; double each mark that is part of the text."
        )


def _separator(sample: Sequence[str]) -> str:
    """Find the separator of cells: the one that gives most rows as many cells as the first."""

    def even_rows(mark: str) -> float:
        """Return the share of rows as wide as the first; 0 if the first has a single cell."""
        rows = csv.reader((f"{line}\n" for line in sample), delimiter=mark)
        try:
            widths = [len(row) for row in rows if row]
        except csv.Error:
            return 0.0
        return widths.count(widths[0]) / len(widths) if widths and widths[0] > 1 else 0.0

    return max(_MARKS, key=even_rows)


def _select_named(
    rows: Iterator[Row], name: str, parts: Sequence[str], skipped: SkippedRows
) -> Iterator[tuple[str, ...]]:
    """Select columns by the names in the first row, or by their number."""
    _, header = next(rows, (0, ()))
    if isinstance(header, str):
        raise TextError(f"{name} must name its columns in its first line, but this line {header}.")
    names = [cell.strip() for cell in header]
    columns = [_column(names, part, name) for part in parts]
    if len(set(columns)) < len(set(parts)):
        raise TextError(
            f"{name} must be read from different columns, but {_list_names(parts)} are the same "
            "column; give another column."
        )
    return _select(rows, name, columns, skipped)


def _column(names: Sequence[str], part: str, name: str) -> int:
    """Return the index of the column that a name or a number selects."""
    places = [number for number, column in enumerate(names) if column == part]
    if len(places) == 1:
        return places[0]
    if part.isdecimal():
        return int(part) - 1
    if places:
        first, second = (number + 1 for number in places[:2])
        raise TextError(
            f"{name} must have a single column “{part}”, but columns {first} and {second} both "
            f"have this name; give a number: {name}:{first}."
        )
    alike = [number for number, column in enumerate(names) if column.lower() == part.lower()]
    if len(alike) == 1:
        return alike[0]
    shown = ", ".join(f"“{column[:40]}”" for column in names[:_SHOWN])
    more = ", …" if len(names) > _SHOWN else ""
    raise TextError(
        f"{name} must have a column “{part}” in its first line, but this line has "
        f"{f'{shown}{more}' if shown else 'none'}; name one of them, or a number: {name}:1."
    )


def _select(
    rows: Iterable[Row], name: str, columns: Sequence[int], skipped: SkippedRows
) -> Iterator[tuple[str, ...]]:
    """Select columns; rows that lack one are skipped."""
    most = max(columns) + 1
    is_empty, reason = True, ""
    for number, cells in rows:
        if isinstance(cells, str) or len(cells) < most:
            why = cells if isinstance(cells, str) else f"has {len(cells)} of {most} columns"
            reason = reason or f"line {number} {why}"
            skipped.add(name, number, why)
            continue
        is_empty = False
        yield tuple(_one_line(cells[column]) for column in columns)
    if is_empty and reason:
        raise TextError(
            f"{name} must have a column {most}, but every row lacks it: {reason}; give another."
        )


def _one_line(cell: str) -> str:
    """Put a cell on one line."""
    return on_one_line(cell) if _LINE_BREAK.search(cell) else cell


def _json_object(line: str) -> dict[str, Any] | str:
    """Parse a line; return the reason for an error if it is not a JSON object."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"is not JSON ({error})"
    return row if isinstance(row, dict) else "is not a JSON object"


def _field(row: dict[str, Any], part: str) -> str | None:
    """Find the text of a field or of a nested field; None if there is none."""
    value: Any = row
    for step in [part] if part in row else part.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    if not isinstance(value, str) or "\0" in value:
        return None
    try:
        value.encode()
    except UnicodeEncodeError:  # an unpaired surrogate
        return None
    return _one_line(value)


def _list_names(parts: Sequence[str]) -> str:
    """List names for a message."""
    return " and ".join(f"“{part}”" for part in dict.fromkeys(parts))
