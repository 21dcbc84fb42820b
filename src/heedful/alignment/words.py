"""
From subwords to words and back.

Attention is between subwords, alignments are between words. Words are what spaces set apart; how
subwords tell where one begins differs between the tools that make them.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

SPACE = "\u2581"
"""What sentencepiece writes for a space, at the beginning of a word."""
CONTINUED = "@@"
"""What subword-nmt writes at the end of a subword that another one continues."""


class Unit(NamedTuple):
    """
    Hold some subwords and the words that they spell.

    Attributes
    ----------
    pieces : range
        Numbers of the subwords.
    words : range
        Numbers of the words, nearly always one.

    Notes
    -----
    A vocabulary of words has one unknown symbol for several unknown words in a row.
    """

    pieces: range
    words: range


def units_of(pieces: Sequence[str], mark: str = SPACE) -> list[Unit]:
    """
    Find the words that subwords spell.

    Parameters
    ----------
    pieces : sequence of str
        Subwords without special symbols.
    mark : {'▁', '@@', ''}, default '▁'
        How subwords are marked: before the first of a word, behind all but the last of a word, or
        not at all, each being a word.

    Returns
    -------
    list of Unit
        In order. A space that belongs to no word is in none.

    Notes
    -----
    Words are what spaces set apart, and nothing else is a space here, as in sentencepiece.

    Examples
    --------
    >>> [list(unit.pieces) for unit in units_of(["▁un", "believ", "able", "▁dog"])]
    [[0, 1, 2], [3]]
    >>> [list(unit.pieces) for unit in units_of(["un@@", "believ@@", "able", "dog"], "@@")]
    [[0, 1, 2], [3]]
    """
    starts = [i for i in range(len(pieces)) if i == 0 or _begins(pieces[i - 1], pieces[i], mark)]
    units: list[Unit] = []
    words = 0
    for start, end in pairwise([*starts, len(pieces)]):
        spelt = "".join(pieces[start:end])
        count = 1 if mark == CONTINUED else len([word for word in spelt.split(SPACE) if word])
        if count:
            units.append(Unit(range(start, end), range(words, words + count)))
            words += count
    return units


def units_of_words(
    pieces: Sequence[str], words: Sequence[str], unknown: str = "<unk>"
) -> list[Unit]:
    """
    Find the words of a known text in what a vocabulary of words made of it.

    Parameters
    ----------
    pieces : sequence of str
        Words of the vocabulary and unknown symbols.
    words : sequence of str
        Words of the text.
    unknown : str, default '<unk>'
        How an unknown symbol is spelt.

    Returns
    -------
    list of Unit
        In order.

    Notes
    -----
    Sentencepiece has one unknown symbol for all unknown words in a row, and for spaces too many;
    what lies between two known words tells how many words a symbol stands for.

    Examples
    --------
    >>> [list(unit.words) for unit in units_of_words(["▁the", "<unk>"], ["the", "zebra", "herd"])]
    [[0], [1, 2]]
    """
    units: list[Unit] = []
    waiting: list[int] = []
    word = 0

    def settle(end: int) -> None:
        """Give the unknown symbols the words up to the next known one."""
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
        if piece == unknown:
            waiting.append(index)
        elif name in words[word:]:
            place = words.index(name, word)
            settle(place)
            units.append(Unit(range(index, index + 1), range(place, place + 1)))
            word = place + 1
    settle(len(words))
    return units


def _begins(before: str, piece: str, mark: str) -> bool:
    """Tell whether a piece begins a unit."""
    if mark == CONTINUED:
        return not before.endswith(CONTINUED)
    return mark != SPACE or piece.startswith(SPACE)
