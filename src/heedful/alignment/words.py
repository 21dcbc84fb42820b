"""
The words of subword sequences.

Attention is between subwords, but alignments link words. Words are separated by spaces; how
subwords mark word boundaries differs between tools.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

SPACE = "\u2581"
"""SentencePiece's character for a space, which marks the beginning of a word."""
CONTINUED = "@@"
"""The marker of subword-nmt at the end of a subword that does not end its word."""
_UNKNOWN = "<unk>"


class Unit(NamedTuple):
    """Adjacent subwords and the words that they spell."""

    pieces: range
    """Indices of the subwords."""
    words: range
    """Indices of the words, nearly always a single index."""


def units_of(pieces: Sequence[str], mark: str = SPACE) -> list[Unit]:
    """
    Group subwords into words.

    Words are separated by spaces alone, as in SentencePiece.

    >>> [list(unit.pieces) for unit in units_of(["▁un", "believ", "able", "▁dog"])]
    [[0, 1, 2], [3]]
    >>> [list(unit.pieces) for unit in units_of(["un@@", "believ@@", "able", "dog"], "@@")]
    [[0, 1, 2], [3]]
    """
    starts = [i for i in range(len(pieces)) if i == 0 or _begins(pieces[i - 1], pieces[i], mark)]
    units: list[Unit] = []
    words = 0
    for start, end in pairwise([*starts, len(pieces)]):
        spelled = "".join(pieces[start:end])
        count = 1 if mark == CONTINUED else len([word for word in spelled.split(SPACE) if word])
        if count:
            units.append(Unit(range(start, end), range(words, words + count)))
            words += count
    return units


def units_of_words(pieces: Sequence[str], words: Sequence[str]) -> list[Unit]:
    """
    Match the words of a text with its tokens from a word vocabulary.

    SentencePiece writes one unknown symbol for several unknown words in a row, and for extra
    spaces. The text between two known words shows how many words a symbol covers.

    >>> [list(unit.words) for unit in units_of_words(["▁the", "<unk>"], ["the", "zebra", "herd"])]
    [[0], [1, 2]]
    """
    units: list[Unit] = []
    waiting: list[int] = []
    word = 0

    def settle(end: int) -> None:
        """Assign the words before the next known word to the unknown symbols."""
        if len(waiting) == end - word:
            units.extend(
                Unit(range(piece, piece + 1), range(word + k, word + k + 1))
                for k, piece in enumerate(waiting)
            )
        elif waiting and end > word:
            units.append(Unit(range(waiting[0], waiting[-1] + 1), range(word, end)))
        waiting.clear()

    for index, piece in enumerate(pieces):
        name = piece.strip(SPACE)
        if piece == _UNKNOWN:
            waiting.append(index)
        elif name in words[word:]:
            place = words.index(name, word)
            settle(place)
            units.append(Unit(range(index, index + 1), range(place, place + 1)))
            word = place + 1
    settle(len(words))
    return units


def _begins(before: str, piece: str, mark: str) -> bool:
    """Decide whether a subword begins a word."""
    if mark == CONTINUED:
        return not before.endswith(CONTINUED)
    return mark != SPACE or piece.startswith(SPACE)
