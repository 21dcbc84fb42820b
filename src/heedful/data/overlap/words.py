"""
Words for the comparison of training text with held-out text.

Case and the composition of accents are ignored (Unicode's D145). A word is a run of
letters and digits with their marks; everything else separates words. In scripts without spaces
(Chinese, Japanese, Thai, Lao, Burmese, Khmer) each letter, with the marks after it, is a word.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from heedful.text.reading.terms import UNSPACED

GRAM = 4
"""Number of consecutive words that are compared as a unit."""
BREAK, MARK, LETTER, ALONE = range(4)
"""Kinds of characters: separator, mark of the character before, part of a word, whole word."""

Gram = tuple[str, ...]
# Rare ideographs are in planes 2 and 3.
_ALONE = re.compile(f"[{UNSPACED}\U00020000-\U0003ffff]")


class Character(NamedTuple):
    """The role of a character in a word."""

    kind: int
    """One of the four kinds."""
    folded: str
    """Its letters and marks in lower case."""


class _Characters(dict[str, Character]):
    """A cache of the roles of characters; it stays small because a language has few characters."""

    def __missing__(self, character: str) -> Character:
        lower = unicodedata.normalize("NFD", character).casefold()
        folded = unicodedata.normalize("NFD", lower)
        kind = BREAK
        if unicodedata.category(folded[0])[0] == "M":
            kind = MARK
        elif folded[0].isalnum():
            kind = ALONE if _ALONE.match(folded) else LETTER
        self[character] = Character(kind, folded)
        return self[character]


CHARACTERS = _Characters()
"""The role of each character."""


def normalize_line(line: str) -> str:
    """
    Normalize a line so that small differences are ignored.

    Used to find test sentences in training text, regardless of case and of how accents are composed
    (Unicode's canonical caseless matching, D145).

    >>> normalize_line("  Resumption of  the SESSION")
    'resumption of the session'
    """
    folded = unicodedata.normalize("NFD", line).casefold()
    return unicodedata.normalize("NFC", " ".join(folded.split()))


def words(line: str) -> Iterator[str]:
    """
    Split a line into words, in lower case and without punctuation.

    >>> list(words("It's 8 O'Clock, Zoë!"))
    ['it', 's', '8', 'o', 'clock', 'zoë']
    >>> list(words("東京は2016年"))
    ['東', '京', 'は', '2016', '年']
    """
    parts: list[str] = []
    before = BREAK  # the kind of the last character that is not a mark
    for character in line:
        kind, folded = CHARACTERS[character]
        if kind == MARK:
            if before != BREAK:
                parts.append(folded)
            continue
        if parts and (kind != LETTER or before != LETTER):
            yield _word(parts)
            parts = []
        if kind != BREAK:
            parts.append(folded)
        before = kind
    if parts:
        yield _word(parts)


def _word(parts: list[str]) -> str:
    """Join a word's characters in their composed form."""
    return unicodedata.normalize("NFC", "".join(parts))


def grams(line_words: Iterable[str]) -> Iterator[Gram]:
    """
    Iterate over the word 4-grams of a line.

    >>> list(grams("abcde"))
    [('a', 'b', 'c', 'd'), ('b', 'c', 'd', 'e')]
    """
    rest = iter(line_words)
    window = tuple(islice(rest, GRAM))
    if len(window) == GRAM:
        yield window
    for word in rest:
        window = (*window[1:], word)
        yield window
