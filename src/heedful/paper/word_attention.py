"""
Word-to-word encoder attention of a run.

Models compute attention between subwords, while the paper's figures show words. Weights are summed
over the subwords of a key word and averaged over the subwords of a query word, so rows still sum to
one. Punctuation at the ends of a word is separate, as in the paper's figures. The end symbol counts
as a word, because inactive heads attend to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from heedful.alignment.from_attention import word_weights
from heedful.alignment.words import Unit
from heedful.errors import SettingError, TextError
from heedful.tokenization.tokenizer import UNKNOWN, Tokenizer
from heedful.translation.aligner import segment_source
from heedful.translation.translator import Translator


class Word(NamedTuple):
    """A word and its subwords; a separate punctuation mark is also a word."""

    name: str
    """Spelling of the word."""
    pieces: range
    """Indices of the word's subwords."""


@dataclass(frozen=True)
class WordAttention:
    """Encoder attention of every head between the words of one sentence."""

    words: tuple[str, ...]
    """Words and punctuation marks in order, and the end symbol if the encoder reads one."""
    weights: Float[np.ndarray, "layers heads words words"]
    """Row i is the attention of word i."""
    unknown: tuple[str, ...]
    """Words with unknown subwords."""
    ended: bool
    """Whether the last word is the end symbol."""

    @property
    def layers(self) -> int:
        """Number of encoder layers."""
        return int(self.weights.shape[0])

    @property
    def heads(self) -> int:
        """Number of heads per layer."""
        return int(self.weights.shape[1])

    def find(self, named: str, option: str) -> tuple[int, ...]:
        """
        Find words by their spelling.

        Returns the indices of the words, counted from 0.

        Exact matches are preferred; if no word matches, case is ignored, then also punctuation. The
        ending ``:2`` of a name selects the second occurrence of a word.
        """
        if not (names := named.split()):
            raise SettingError(f"{option} must name words of the sentence, but is empty.")
        return tuple(self._find(name, option) for name in names)

    def _find(self, name: str, option: str) -> int:
        """Find one word."""
        letters, colon, count = name.rpartition(":")
        if not (colon and letters and count.isdecimal() and int(count) > 0):
            letters, count = name, "1"
        places = [i for i, word in enumerate(self.words) if word == letters]
        for simplify in (str.casefold, _bare):
            simple = simplify(letters)
            places = places or [i for i, word in enumerate(self.words) if simplify(word) == simple]
        if len(places) < int(count):
            raise SettingError(
                f"{option} must name words of the sentence, but it has no “{name}”: "
                f"{' '.join(self.words)}. Write the second occurrence of a word as “its:2”."
            )
        return places[int(count) - 1]


def word_attention(translator: Translator, sentence: str) -> WordAttention:
    """
    Compute the word-to-word encoder attention of a sentence.

    Raises `SettingError` for an encoder without attention. Raises `TextError` for a sentence that
    has no words or is too long for the run.
    """
    model = translator.run.config.model
    setting, encoder = "model.encoder", str(model.encoder)
    if encoder == "transformer":
        setting, encoder = "model.attention.encoder", model.attention.encoder
    if encoder not in ("transformer", "attention"):
        raise SettingError(
            "the run's encoder must have self-attention, which this command shows, but "
            f"`{setting}` is {encoder}; name a run whose encoder has self-attention."
        )
    tokenizer, limit = translator.tokenizer, translator.run.config.search.max_source_length
    (sentence,) = translator.run.read_sources([sentence])
    (ids,) = tokenizer.encode_source([sentence])
    if len(ids) > limit:
        raise TextError(
            f"the sentence must have 1 to {limit:,} subwords (search.max_source_length), but has "
            f"{len(ids):,}; give another sentence."
        )
    words = words_of(tokenizer, sentence, ids) if ids else []
    if not words:
        raise TextError("the sentence must have a word, but has none; give another.")
    attention = translator.attend(sentence, target="")
    unknown = [word.name for word in words if UNKNOWN in ids[word.pieces.start : word.pieces.stop]]
    ended = len(attention.source_tokens) > len(ids)
    if ended:
        words.append(Word(attention.source_tokens[-1], range(len(ids), len(ids) + 1)))
    units = [Unit(word.pieces, range(number, number + 1)) for number, word in enumerate(words)]
    layers, heads, _, _ = attention.encoder.shape
    weights = np.empty((layers, heads, len(units), len(units)))
    for place in np.ndindex(layers, heads):
        weights[place] = word_weights(attention.encoder[place], units, units)
    return WordAttention(tuple(word.name for word in words), weights, tuple(unknown), ended)


def words_of(tokenizer: Tokenizer, sentence: str, ids: Sequence[int]) -> list[Word]:
    """Split a sentence into words, with punctuation at their ends as separate words."""
    # A punctuation mark is separate if it is a subword of its own: “perfect,” is two words if the
    # comma is a subword.
    side = segment_source(tokenizer, sentence, ids)
    words: list[Word] = []
    for unit in side.units:
        spelled = [tokenizer.decode_source([ids[piece]]).strip() for piece in unit.pieces]
        word = " ".join(side.words[index] for index in unit.words)
        # A single byte or an unknown subword has no spelling.
        sizes = _sizes(spelled) if "".join(spelled) == word else [len(spelled)]
        first = 0
        for size in sizes:
            name = "".join(spelled[first : first + size]) if len(sizes) > 1 else word
            start = unit.pieces.start + first
            words.append(Word(name, range(start, start + size)))
            first += size
    return _with_every_piece(words, len(ids))


def _sizes(spelled: Sequence[str]) -> list[int]:
    """Count the subwords of each mark before a word, of the word, and of each mark after it."""
    first, last = 0, len(spelled)
    while last - first > 1 and _is_mark(spelled[first]):
        first += 1
    while last - first > 1 and _is_mark(spelled[last - 1]):
        last -= 1
    sizes, waiting = [], 0
    for size, text in [*((1, mark) for mark in spelled[:first]), (last - first, "word")]:
        waiting += size
        if text:  # a subword that is only a space joins the next subword
            sizes.append(waiting)
            waiting = 0
    return sizes + [1] * (len(spelled) - last)


def _bare(word: str) -> str:
    """Fold the case and remove punctuation; a word of only punctuation is returned unchanged."""
    return "".join(letter for letter in word.casefold() if letter.isalnum()) or word


def _is_mark(text: str) -> bool:
    """Tell whether a subword has neither letters nor digits."""
    return not any(letter.isalnum() for letter in text)


def _with_every_piece(words: Sequence[Word], count: int) -> list[Word]:
    """Assign subwords without a word to the next word, or to the last word."""
    complete: list[Word] = []
    for number, word in enumerate(words):
        start = complete[-1].pieces.stop if complete else 0
        stop = count if number == len(words) - 1 else word.pieces.stop
        complete.append(Word(word.name, range(start, stop)))
    return complete
