"""The words of a sentence, matched with the subwords that a model has of it."""

from collections.abc import Sequence
from typing import NamedTuple

from heedful.data.tokenizer import UNKNOWN, Tokenizer
from heedful.search.units import CONTINUED, SPACE, Unit, units_of, units_of_words

Ids = Sequence[int]

# How each kind of tokenizer marks the subwords of a word; all others as sentencepiece does.
_MARKS = {"word": "", "word-list": "", "codes": CONTINUED}


class Side(NamedTuple):
    """
    Hold one side of a pair as words and as subwords.

    Attributes
    ----------
    ids : sequence of int
        Subwords, without special symbols.
    words : sequence of str
        Words.
    units : list of Unit
        Which subwords spell which words.

    Notes
    -----
    What was cut off a line that is too long has words but no subwords.
    """

    ids: Ids
    words: Sequence[str]
    units: list[Unit]

    @property
    def unknown(self) -> list[int]:
        """Numbers of the words that have an unknown subword."""
        return [
            unit.words[0]
            for unit in self.units
            if UNKNOWN in (self.ids[piece] for piece in unit.pieces)
        ]


def given_side(tokenizer: Tokenizer, text: str, ids: Ids, pieces: Sequence[str]) -> Side:
    """
    Find the words of a text that is given.

    Parameters
    ----------
    tokenizer : Tokenizer
        Made the subwords.
    text : str
        A line.
    ids : sequence of int
        Its subwords, perhaps not to the end.
    pieces : sequence of str
        How they are spelt.

    Returns
    -------
    Side
        All words of the line.

    Notes
    -----
    Words are what the tokenizer takes for words: what spaces set apart, nearly always.
    """
    kind: str = tokenizer.kind
    mark = _MARKS.get(kind, SPACE)
    if kind == "word-list":
        words = text.split()
    else:
        spaced = text if mark == CONTINUED else text.replace(SPACE, " ")
        words = [word for word in spaced.split(" ") if word]
    units = units_of(pieces, mark) if mark else units_of_words(pieces, words)
    return Side(ids, words, units)


def written_side(tokenizer: Tokenizer, ids: Ids) -> Side:
    """
    Find the words of a translation that a model wrote.

    Parameters
    ----------
    tokenizer : Tokenizer
        Of the model.
    ids : sequence of int
        Target subwords, without special symbols.

    Returns
    -------
    Side
        Its words; what is unknown is “⁇”.

    Notes
    -----
    An unknown symbol is one word in a vocabulary of words, however many it stands for.
    """
    units = units_of(tokenizer.pieces_target(ids), _MARKS.get(tokenizer.kind, SPACE))
    spelt = (tokenizer.decode([ids[piece] for piece in unit.pieces]) for unit in units)
    return Side(ids, [word.replace(" ", "") for word in spelt], units)
