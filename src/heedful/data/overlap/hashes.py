"""
Hashes of lines and of their word 4-grams, computed for thousands of lines at once.

A Python loop over words would take 15 times as long, and every line of the training text is hashed
here. A character's hash is the sum of the mixed code points of its case-folded letters and marks. A
word's hash is the sum of its characters' hashes, so neither case nor the order of marks matters.
Anagrams have equal hashes, so matching lines are compared by text afterwards
(`heedful.data.overlap.lines`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Int64, UInt8, UInt64

from heedful.data.overlap.words import ALONE, BREAK, CHARACTERS, GRAM, LETTER, MARK

_UNKNOWN = 255
_CODES = 0x110000
# Odd factors without a pattern: the words of a 4-gram must not be exchangeable.
_FACTORS = tuple(
    np.uint64(factor)
    for factor in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93)
)
_WORD = (1 << 64) - 1


@dataclass(frozen=True)
class LineHashes:
    """Hashes of some lines (L lines, W words, G 4-grams)."""

    lines: UInt64[np.ndarray, " L"]
    """For each line, the sum of the hashes of all characters except white space."""
    word_counts: Int64[np.ndarray, " L"]
    """Number of words in each line."""
    grams: UInt64[np.ndarray, " G"]
    """The hashes of the 4-grams of all lines, in order."""
    gram_lines: Int64[np.ndarray, " G"]
    """The index of each 4-gram's line."""


class _Tables:
    """The kind and the hash of each code point, computed when a character first occurs."""

    def __init__(self) -> None:
        self.kinds = np.full(_CODES, _UNKNOWN, np.uint8)
        self.hashes = np.zeros(_CODES, np.uint64)

    def kinds_of(self, codes: Int64[np.ndarray, " C"]) -> UInt8[np.ndarray, " C"]:
        """Look up the kinds of characters; compute kinds and hashes of new characters."""
        kinds = self.kinds.take(codes)
        unknown = kinds == _UNKNOWN
        if not unknown.any():
            return kinds
        for code in np.unique(codes[unknown]).tolist():
            kind, folded = CHARACTERS[chr(code)]
            self.kinds[code] = kind
            self.hashes[code] = sum(_mix_bits(ord(c)) for c in folded if not c.isspace()) & _WORD
        return self.kinds.take(codes)


_tables = cache(_Tables)  # ten megabytes, allocated on first use


def hash_lines(lines: Sequence[str]) -> LineHashes:
    """Hash lines and their word 4-grams; takes about forty bytes per character."""
    tables = _tables()
    # Line feeds separate the words of neighboring lines; a line may itself contain line feeds.
    text = "\n".join([*lines, ""])
    encoded = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    codes = encoded.astype(np.int64)  # (characters,)
    kinds = tables.kinds_of(codes)
    hashes = tables.hashes.take(codes)
    ends = np.cumsum(np.fromiter(map(len, lines), np.int64, len(lines)) + 1)
    if not len(ends):
        empty = np.zeros(0, np.uint64)
        return LineHashes(empty, np.zeros(0, np.int64), empty, np.zeros(0, np.int64))
    line_hashes = np.add.reduceat(hashes, np.concatenate([[0], ends[:-1]]))

    # 1. marks take the kind of their character
    base = _without_marks(kinds)
    is_first = (kinds == ALONE) | (kinds == LETTER)
    is_first[1:] &= (kinds[1:] == ALONE) | (base[:-1] != LETTER)

    # 2. sums over words
    in_words = np.flatnonzero(base != BREAK)
    first = np.flatnonzero(is_first.take(in_words))  # (W,)
    words = np.add.reduceat(hashes.take(in_words), first) if len(first) else hashes[:0]
    word_lines = np.searchsorted(ends, in_words[first], side="right")  # (W,)
    word_counts = np.bincount(word_lines, minlength=len(lines)).astype(np.int64)

    # 3. 4-grams, without those that would reach into the next line
    many = max(len(words) - GRAM + 1, 0)
    grams = np.zeros(many, np.uint64)
    for place, factor in enumerate(_FACTORS):
        grams += words[place : place + many] * factor
    inside = word_lines[:many] == word_lines[GRAM - 1 : GRAM - 1 + many]
    return LineHashes(line_hashes, word_counts, grams[inside], word_lines[:many][inside])


def _without_marks(kinds: UInt8[np.ndarray, " C"]) -> UInt8[np.ndarray, " C"]:
    """Replace the kind of each mark with the kind of the character that it belongs to."""
    if not (kinds == MARK).any():
        return kinds
    places = np.where(kinds == MARK, 0, np.arange(len(kinds)))
    base = kinds[np.maximum.accumulate(places)]
    base[base == MARK] = BREAK  # a mark at the beginning has no character before it
    return base


def _mix_bits(code: int) -> int:
    """Spread a code point over 64 bits (the finalizer of splitmix64, Steele et al. 2014)."""
    mixed = (code * 0x9E3779B97F4A7C15) & _WORD
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _WORD
    return mixed ^ (mixed >> 31)
