"""
Pairs of sentences from Python: lists and generators, and tables from other libraries.

Tables are recognized by their attributes, so that their libraries need not be imported:

::

    [("A dog.", "Ein Hund."), …]      rows of two strings; zip(…) and a generator too
    pandas, polars                    `columns` lists names, and a name selects a column
    datasets, csv.DictReader          rows are dicts of two columns, or have a column `translation`,
                                      which is a dict of two languages

The first column is the source, unless the columns are named after the run's languages in reverse
order. A `translation` of `datasets` sorts its languages, so their names decide, not their order.

Pairs in memory are stored as two files, one sentence per line. So a sentence must not have a line
break, a NUL, or anything that UTF-8 cannot encode.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from itertools import chain, zip_longest
from pathlib import Path
from reprlib import repr as shorten
from typing import Any

from heedful.arguments import PAIR_FORMS
from heedful.errors import ArgumentError, TextError
from heedful.files import replacing_file
from heedful.text.corpus import Corpus

_SIDES = ("source", "target")
_COUNT = 2
_BYTE_ORDER_MARK = "\ufeff"  # dropped from the first line of a file


class PairRows:
    """Pairs that can be read once. `name`: the argument's name, for messages."""

    def __init__(self, name: str, pairs: Iterable[Any]) -> None:
        self.name = name
        rows = _rows(pairs)
        first = list(next(zip(rows), ()))
        if not first:
            raise TextError(
                f"`{name}` must hold at least one pair, but is empty; a generator can be read only "
                "once, so make a new one for each use."
            )
        self._rows = chain(first, rows)
        self.columns: tuple[Any, ...] = ()
        """Names of the two columns, if the rows have names."""
        self._are_sorted = False
        if isinstance(first[0], Mapping):
            fields = _fields(first[0])
            self.columns, self._are_sorted = tuple(fields), fields is not first[0]
        if len(self.columns) not in (0, _COUNT):
            shown = ", ".join(map(str, self.columns))
            raise ArgumentError(
                f"`{name}` must have two columns, or one column `translation` with two languages, "
                "but "
                f'its columns are {shown}; choose two: zip(table["en"], table["de"]).'
            )

    def ordered(self, source_language: str, target_language: str) -> tuple[Any, ...]:
        """Return the columns, source first: by the languages' names, or else in the given order."""
        if not self.columns:
            return ()
        first, second = self.columns
        fits = first == source_language or second == target_language
        is_swapped = not fits and (second == source_language or first == target_language)
        if self._are_sorted and not fits and not is_swapped:
            raise ArgumentError(
                f"`{self.name}` must say which language is the source, but the order of "
                f"{first} and {second} does not; set data.source_language or data.target_language."
            )
        return (second, first) if is_swapped else (first, second)

    def read(
        self, source_language: str = "", target_language: str = ""
    ) -> Iterator[tuple[str, str]]:
        """Yield the pairs; raises `ArgumentError` or `TextError` if a pair cannot be stored."""
        columns = self.ordered(source_language, target_language)
        for number, row in enumerate(self._rows):
            source, target = self._pair(number, row, columns)
            yield self._sentence(number, "source", source), self._sentence(number, "target", target)

    def _pair(self, number: int, row: object, columns: tuple[Any, ...]) -> list[Any]:
        """Return the source and the target of a row."""
        if columns and isinstance(row, Mapping):
            fields = _fields(row)
            if fields.keys() == set(columns):
                return [fields[column] for column in columns]
        elif not columns and isinstance(row, Collection):
            unordered = isinstance(row, str | bytes | Mapping | Set)
            if len(row) == _COUNT and not unordered:
                return list(row)
        raise ArgumentError(
            f"`{self.name}` must hold pairs of a source and a target, all in the same form, but "
            f"its pair {number} is {shorten(row)}; {PAIR_FORMS}."
        )

    def _sentence(self, number: int, side: str, text: object) -> str:
        """Check one side of a pair."""
        place = f"the {side} of pair {number}"
        if not isinstance(text, str):
            raise ArgumentError(
                f"`{self.name}` must hold pairs of strings, but {place} is {shorten(text)}; leave "
                "such pairs out, as table.dropna() does for missing values."
            )
        if any(character in text for character in "\n\r\0"):
            raise TextError(
                f"`{self.name}` must hold sentences of one line, but {place} has a line break or a "
                f'NUL: {shorten(text)}; write spaces instead: " ".join(text.split()).'
            )
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise TextError(
                f"`{self.name}` must hold text, but {place} has an unpaired surrogate at "
                f"position {error.start}; decode the bytes of the text again, without "
                "surrogateescape, or remove the surrogate."
            ) from None
        return text.removeprefix(_BYTE_ORDER_MARK) if number == 0 else text


def _rows(pairs: Any) -> Iterator[Any]:
    """Return the rows; rows of a table with columns become dicts."""
    columns = getattr(pairs, "columns", None)
    if columns is None:
        return iter(pairs)
    names = list(columns)
    rows = zip(*(pairs[name] for name in names), strict=True)
    return (dict(zip(names, row, strict=True)) for row in rows)


def _fields(row: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return the sides of a row by column name or, in a `translation` entry, by language."""
    translation = row.get("translation")
    return translation if isinstance(translation, Mapping) else row


def stored_pairs(folder: Path, name: str) -> Corpus | None:
    """Find stored pairs; None if there are none, or a process was killed while it wrote them."""
    source, target = (folder / f"{name}.{side}" for side in _SIDES)
    return Corpus([source], [target]) if source.exists() else None


def store_pairs(folder: Path, name: str, pairs: Iterable[Iterable[str]]) -> Corpus:
    """Write pairs atomically to two files."""
    folder.mkdir(exist_ok=True)
    for leftover in folder.glob(f".{name}.*"):
        leftover.unlink()  # left by a process that was killed
    source, target = (folder / f"{name}.{side}" for side in _SIDES)
    # The source is renamed last, so the target exists if the source does.
    with replacing_file(source) as source_file, replacing_file(target) as target_file:
        for source_line, target_line in pairs:
            source_file.write(f"{source_line}\n")
            target_file.write(f"{target_line}\n")
    return Corpus([source], [target])


def first_difference(corpus: Corpus, pairs: Iterable[Iterable[str]]) -> int | None:
    """Find the index of the first pair that differs from the stored one; None if none does."""
    for number, (stored, pair) in enumerate(zip_longest(corpus.pairs(), pairs)):
        if stored is None or pair is None or stored != tuple(pair):
            return number
    return None
