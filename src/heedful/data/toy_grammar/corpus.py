"""
A small English-French grammar: the corpus that needs no download.

A sentence is drawn as a tree (`heedful.data.toy_grammar.generator`) that both languages say, each
in its own file of `heedful.data.toy_grammar`. Where the two differ is what a translator has to
learn. Every English sentence has exactly one French translation: what English hides and French must
show (a gender, a tense) is left out or told by the sentence itself. Since both sides say the same
tree, it is known which word translates which.

The text of the embedded grammar as files: a corpus that needs no download.
"""

import random
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from heedful.alignment.links import GoldLinks, write_gold
from heedful.data.toy_grammar.alignment import SurfaceToken, links
from heedful.data.toy_grammar.english import english
from heedful.data.toy_grammar.french import french
from heedful.data.toy_grammar.generator import SentenceGenerator
from heedful.data.toy_grammar.lexicon import ADJECTIVES, NOUNS
from heedful.data.toy_grammar.syntax_tree import NounPhrase, Tree
from heedful.errors import TextError
from heedful.files import write_whole, writing

Pair = tuple[str, str]

# Never in the training split: “the big red dog”, which the quickstart asks a new model for.
_SHOWPIECE = NounPhrase(
    "the",
    tuple(adjective for adjective in ADJECTIVES if adjective.english in ("big", "red")),
    next(noun for noun in NOUNS if noun.singular == "dog"),
    plural=False,
)
_SHORTEST, _LONGEST = 2, 14


class AlignedPair(NamedTuple):
    """
    Hold a sentence, its translation, and which word translates which.

    Attributes
    ----------
    source : str
        English.
    target : str
        French.
    sure : frozenset of (int, int)
        Links that every annotator would draw: numbers of an English and a French word, counted
        from 0 between spaces.
    possible : frozenset of (int, int)
        The sure ones and those that one may draw: “did” and the auxiliary, “not” and “ne”.

    Notes
    -----
    A word that is written as one with another (“l'arbre”, “du”) has the links of both.
    """

    source: str
    target: str
    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]


def sample_pairs(count: int, seed: int) -> list[Pair]:
    """
    Draw sentences with their translations.

    Parameters
    ----------
    count : int
        How many pairs to draw; at least 0.
    seed : int
        Seed of the drawing; the same seed draws the same pairs.

    Returns
    -------
    list of (str, str)
        English and French, lower-case, 2 to 14 English words, no source sentence twice.

    Notes
    -----
    A longer list with the same seed starts with the shorter one. Millions of sentences can be
    drawn, so distinct ones do not run out at any size that is of use.

    Examples
    --------
    >>> sample_pairs(3, seed=1) == sample_pairs(5, seed=1)[:3]
    True
    """
    return [(source, _text(french(tree))) for source, tree in _draw(count, seed).items()]


def split_pairs(train: int, held_out: int, seed: int) -> tuple[list[Pair], list[Pair]]:
    """
    Draw a training set and sentences that are not in it.

    Parameters
    ----------
    train : int
        How many pairs to train on; at least 0.
    held_out : int
        How many pairs to hold out; at least 1.
    seed : int
        Seed of the drawing.

    Returns
    -------
    training : list of (str, str)
        Pairs to train on.
    unseen : list of (str, str)
        Pairs whose source sentence is not in `training`; “the big red dog” is the first.

    Raises
    ------
    ValueError
        If a size is below its minimum.

    Notes
    -----
    The held-out sentences are made of the same words as the training sentences in combinations
    that are new, so whoever translates them has learned the grammar and not the list.
    """
    training, unseen = split_aligned(train, held_out, seed)
    return training, [(pair.source, pair.target) for pair in unseen]


def sample_aligned(count: int, seed: int) -> list[AlignedPair]:
    """
    Draw sentences with their translations and word alignments.

    Parameters
    ----------
    count : int
        How many pairs to draw; at least 0.
    seed : int
        Seed of the drawing.

    Returns
    -------
    list of AlignedPair
        The pairs of `sample_pairs`, with the links that both sides' common tree knows.

    Notes
    -----
    A gold set that nobody annotated and no aligner guessed: it measures the error rate of
    alignments that are read off a model's attention.

    Examples
    --------
    >>> sample_aligned(1, seed=1)[0][:2] == sample_pairs(1, seed=1)[0]
    True
    """
    return [_aligned(tree) for tree in _draw(count, seed).values()]


def split_aligned(train: int, held_out: int, seed: int) -> tuple[list[Pair], list[AlignedPair]]:
    """
    Draw a training set, and sentences that are not in it with their word alignments.

    Parameters
    ----------
    train : int
        How many pairs to train on; at least 0.
    held_out : int
        How many pairs to hold out; at least 1.
    seed : int
        Seed of the drawing.

    Returns
    -------
    training : list of (str, str)
        Pairs to train on.
    unseen : list of AlignedPair
        The pairs that `split_pairs` holds out, in order.

    Raises
    ------
    ValueError
        If a size is below its minimum.

    Notes
    -----
    Alignments of sentences that a model has learned by heart would prove little.
    """
    if train < 0 or held_out < 1:
        raise ValueError(f"train must be at least 0 and held_out at least 1: {train}, {held_out}")
    trees = _draw(train + held_out, seed)
    trees.pop(_text(english(_SHOWPIECE)), None)
    training = [(source, _text(french(tree))) for source, tree in islice(trees.items(), train)]
    unseen = islice(trees.values(), train, train + held_out - 1)
    return training, [_aligned(tree) for tree in (_SHOWPIECE, *unseen)]


def sample_trees(count: int, seed: int) -> list[Tree]:
    """
    Draw the trees that sentences say.

    Parameters
    ----------
    count : int
        How many; at least 0.
    seed : int
        Seed of the drawing.

    Returns
    -------
    list of NounPhrase or Clause
        Those of the sentences of `sample_pairs`.

    Notes
    -----
    For whoever asks what stands where in a sentence.
    """
    return list(_draw(count, seed).values())


def _draw(count: int, seed: int) -> dict[str, Tree]:
    """Draw trees of different English sentences."""
    author = SentenceGenerator(random.Random(seed))
    trees: dict[str, Tree] = {}
    while len(trees) < count:
        tree = author.sentence()
        words = english(tree)
        if _SHORTEST <= len(words) <= _LONGEST:
            trees[_text(words)] = tree
    return trees


def _text(tokens: Sequence[SurfaceToken]) -> str:
    """Write tokens as a line."""
    return " ".join(token.text for token in tokens)


def _aligned(tree: Tree) -> AlignedPair:
    """Say a tree in both languages and link their words."""
    source, target = english(tree), french(tree)
    found = dict(links(source, target))
    sure = frozenset(link for link, is_sure in found.items() if is_sure)
    return AlignedPair(_text(source), _text(target), sure, frozenset(found))


NAME = "grammar"
SIZES = (15_000, 500, 1_000)
"""Pairs to train on, to validate with and to test on."""
_SEED = 1


def write_grammar_text(folder: Path, sizes: tuple[int, int, int] = SIZES) -> None:
    """Write training, validation and test text, and the word alignment of the test."""
    train_pairs, valid_pairs, test_pairs = sizes
    pairs, aligned = split_aligned(train_pairs, valid_pairs + test_pairs, _SEED)
    held_out = [(pair.source, pair.target) for pair in aligned]
    parts = {"train": pairs, "valid": held_out[test_pairs:], "test": held_out[:test_pairs]}
    lines = {
        f"{name}.{language}": [pair[side] for pair in part]
        for name, part in parts.items()
        for side, language in enumerate(("en", "fr"))
    }
    links = [write_gold(GoldLinks(pair.sure, pair.possible)) for pair in aligned[:test_pairs]]
    files = {
        folder / name: "".join(f"{line}\n" for line in part).encode()
        for name, part in (lines | {"test.links": links}).items()
    }
    for path, content in files.items():
        if path.exists() and (not path.is_file() or path.read_bytes() != content):
            raise TextError(
                f"{path} would be overwritten, but is not the text of the grammar; name another "
                "folder, or move it away."
            )
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for path, content in files.items():
            write_whole(path, content)
