"""
Held-out lines, and the search for training lines that repeat one of them.

A line repeats a held-out line exactly if `normalize_line` makes them equal. It nearly repeats the
held-out line if it has at least nine tenths of that line's distinct word 4-grams. Only held-out
lines of 8 to 1,000 words are compared in this way. If at most ``m`` of the 4-grams may be missing,
at least 5 of any ``m + 5`` are present. So only the rarest 4-grams of each held-out line are looked
up (the prefix filter of Chaudhuri et al. 2006).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int64, UInt64

from heedful.data.overlap.hashes import LineHashes, hash_lines
from heedful.data.overlap.words import GRAM, Gram, grams, normalize_line, words

LEAST_WORDS, MOST_WORDS = 8, 1000
"""Minimum and maximum number of words of a held-out line that is also compared by its 4-grams."""
LONGEST = 100_000
"""Maximum number of characters of a line compared by 4-grams; no model reads longer lines."""

# Number of 4-grams that are looked up in addition to those that may be missing. With one instead of
# five, one line of Europarl in ten would have to be compared with held-out lines.
_LOOKED_UP = 5
_HASHED_CHARACTERS = 250_000  # hashed at once, in 10 MB of arrays
# The table in which 4-grams are looked up first fits into a processor's cache.
_TABLE_BITS = 18
_TABLE_SHIFT = np.uint64(64 - _TABLE_BITS)


class Repetition(NamedTuple):
    """The held-out lines that a line repeats, as indices of the distinct held-out lines."""

    exact: int | None
    """The line that it equals."""
    near: tuple[int, ...]
    """Other held-out lines that it nearly repeats, in order."""


class HeldOutLines:
    """An index of distinct held-out lines; its size does not depend on the compared text."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._ids: dict[str, int] = {}
        for line in map(normalize_line, lines):
            if line:
                self._ids.setdefault(line, len(self._ids))
        self._texts = list(self._ids)
        hashed = [hashes for _, hashes in _hash_lines(self._texts)]
        self._line_hashes = np.unique(_concatenate([part.lines for part in hashed]))
        self._rare = _rarest(hashed)
        self._table = np.zeros(1 << _TABLE_BITS, bool)
        self._table[self._rare.hashes >> _TABLE_SHIFT] = True

    def id_of(self, line: str) -> int | None:
        """Return the index of an equal held-out line, if there is one."""
        return self._ids.get(normalize_line(line))

    def find(self, lines: Sequence[str]) -> dict[int, Repetition]:
        """Find the lines that repeat a held-out line; the keys are line indices, in order."""
        matches: dict[int, Repetition] = {}
        if not self._texts:
            return matches
        for start, hashes in _hash_lines(lines):
            wanted = self._with_rare_grams(hashes)
            equal = np.flatnonzero(_is_in(hashes.lines, self._line_hashes)).tolist()
            for number in sorted({*equal, *wanted}):
                line = lines[start + number]
                exact = self.id_of(line)
                near = _near(line, exact, wanted.get(number, ()), self._texts)
                if exact is not None or near:
                    matches[start + number] = Repetition(exact, near)
        for place, line in enumerate(lines):
            if len(line) > LONGEST and (exact := self.id_of(line)) is not None:
                matches[place] = Repetition(exact, ())
        return dict(sorted(matches.items()))

    def _with_rare_grams(self, hashes: LineHashes) -> dict[int, list[int]]:
        """List, for each line, the held-out lines that share enough rare 4-grams with it."""
        rare = self._rare
        likely = np.flatnonzero(self._table[hashes.grams >> _TABLE_SHIFT])
        values, rows = hashes.grams[likely], hashes.gram_lines[likely]
        first = np.searchsorted(rare.hashes, values, "left")
        many = np.searchsorted(rare.hashes, values, "right") - first
        # each position in the table of rare 4-grams, once per line
        starts = np.repeat(first - np.cumsum(many) + many, many)
        places = starts + np.arange(len(starts))
        met = np.unique(np.repeat(rows, many) * len(rare.hashes) + places)
        rows, places = met // max(len(rare.hashes), 1), met % max(len(rare.hashes), 1)
        pairs, count = np.unique(rows * len(self._texts) + rare.ids[places], return_counts=True)
        rows, ids = pairs // len(self._texts), pairs % len(self._texts)
        enough = count >= rare.needed[ids]
        wanted: dict[int, list[int]] = {}
        for row, number in zip(rows[enough].tolist(), ids[enough].tolist(), strict=True):
            wanted.setdefault(row, []).append(number)
        return wanted


@dataclass(frozen=True)
class _RareGrams:
    """The rarest 4-grams of each held-out line (R in all, N lines)."""

    hashes: UInt64[np.ndarray, " R"]
    """Their hashes, sorted."""
    ids: Int64[np.ndarray, " R"]
    """The line of each 4-gram."""
    needed: Int64[np.ndarray, " N"]
    """How many rare 4-grams of each held-out line another line must have to be compared."""


def holds(present: set[Gram], held_out: str) -> bool:
    """Whether at least nine tenths of a held-out line's distinct 4-grams are present."""
    own = {*grams(words(held_out))}
    return 10 * len(own & present) >= 9 * len(own)


def _near(
    line: str, exact: int | None, wanted: Sequence[int], texts: Sequence[str]
) -> tuple[int, ...]:
    """Keep the held-out lines, except an equal line, that share enough 4-grams with a line."""
    if not wanted or wanted == [exact]:
        return ()
    present = {*grams(words(line))}
    return tuple(number for number in wanted if number != exact and holds(present, texts[number]))


def _hash_lines(lines: Sequence[str]) -> Iterator[tuple[int, LineHashes]]:
    """Yield the start and the hashes of each group of lines; overlong lines count as empty."""
    lengths = np.fromiter(map(len, lines), np.int64, len(lines))
    if (lengths > LONGEST).any():
        lines = ["" if len(line) > LONGEST else line for line in lines]
        lengths[lengths > LONGEST] = 0
    ends = np.cumsum(lengths + 1)
    start, read = 0, 0
    while start < len(lines):
        end = max(int(np.searchsorted(ends, read + _HASHED_CHARACTERS)), start + 1)
        yield start, hash_lines(lines[start:end])
        start, read = end, int(ends[end - 1])


def _rarest(hashed: Sequence[LineHashes]) -> _RareGrams:
    """Choose the 4-grams of each line that occur in the fewest lines."""
    counts = _concatenate([part.word_counts for part in hashed]).astype(np.int64)  # (N,)
    starts = np.cumsum([0, *(len(part.lines) for part in hashed)])[:-1].tolist()
    rows = _concatenate(
        [part.gram_lines + start for part, start in zip(hashed, starts, strict=True)]
    )
    values = _concatenate([part.grams for part in hashed])  # (G,)
    rows = rows.astype(np.int64)  # (G,)
    is_compared = (counts >= LEAST_WORDS) & (counts <= MOST_WORDS)
    inside = is_compared[rows]
    values, rows = values[inside], rows[inside]

    # 1. each 4-gram once per line, with the number of lines that have it
    order = np.lexsort((values, rows))
    values, rows = values[order], rows[order]
    is_new = np.ones(len(rows), bool)
    is_new[1:] = (values[1:] != values[:-1]) | (rows[1:] != rows[:-1])
    values, rows = values[is_new], rows[is_new]
    _, inverse, number = np.unique(values, return_inverse=True, return_counts=True)

    # 2. the rank of each 4-gram among the 4-grams of its line
    order = np.lexsort((number[inverse], rows))
    values, rows = values[order], rows[order]
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows, "left")
    # number of 4-grams that may be missing, from word counts, because anagrams share a hash
    missing = (counts - GRAM + 1) // 10
    is_rare = rank < missing[rows] + _LOOKED_UP
    values, rows = values[is_rare], rows[is_rare]
    chosen = np.bincount(rows, minlength=len(counts))
    needed = np.maximum(chosen - missing, 1)
    order = np.argsort(values, kind="stable")
    return _RareGrams(values[order], rows[order], needed)


def _concatenate(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenate any number of arrays, even none."""
    return np.concatenate(arrays) if arrays else np.zeros(0, np.uint64)


def _is_in(
    values: UInt64[np.ndarray, " N"], table: UInt64[np.ndarray, " M"]
) -> Bool[np.ndarray, " N"]:
    """Whether each value is in a sorted table."""
    if not len(table):
        return np.zeros(len(values), bool)
    places = np.minimum(np.searchsorted(table, values), len(table) - 1)
    return table[places] == values
