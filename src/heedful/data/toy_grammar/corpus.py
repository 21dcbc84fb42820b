"""
A small English-French corpus from a grammar, which needs no download.

A sentence is drawn as a tree (`heedful.data.toy_grammar.generator`) that both languages realize,
each in its own file of `heedful.data.toy_grammar`. A translator has to learn the differences
between the two. Every English sentence has exactly one French translation. A gender or tense that
English does not show is avoided, or follows from the sentence. Both sides realize the same tree, so
the word alignment is known.
"""

import random
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from heedful.alignment.links import GoldLinks, write_gold
from heedful.data.text_parts import Pair, Sizes, side_files, write_lines
from heedful.data.toy_grammar.alignment import SurfaceToken, links
from heedful.data.toy_grammar.english import english
from heedful.data.toy_grammar.french import french
from heedful.data.toy_grammar.generator import SentenceGenerator
from heedful.data.toy_grammar.lexicon import ADJECTIVES, NOUNS
from heedful.data.toy_grammar.syntax_tree import NounPhrase, Tree

# “The big red dog”, which the quickstart translates, is never in the training split.
_SHOWPIECE = NounPhrase(
    "the",
    tuple(adjective for adjective in ADJECTIVES if adjective.english in ("big", "red")),
    next(noun for noun in NOUNS if noun.singular == "dog"),
    plural=False,
)
_SHORTEST, _LONGEST = 2, 14


class AlignedPair(NamedTuple):
    """
    A sentence, its translation, and the word alignment.

    A word that is contracted with another (“l'arbre”, “du”) has the links of both words.
    """

    source: str
    target: str
    sure: frozenset[tuple[int, int]]
    """Sure links: indices of an English and a French word, from 0; spaces separate words."""
    possible: frozenset[tuple[int, int]]
    """The sure links and merely possible ones, such as “not” with “ne”."""


def sample_pairs(count: int, seed: int) -> list[Pair]:
    """
    Draw sentences with their translations.

    A longer list with the same seed starts with the shorter one. Millions of distinct sentences
    exist, so they do not run out at any useful size.

    >>> sample_pairs(3, seed=1) == sample_pairs(5, seed=1)[:3]
    True
    """
    return [(source, _text(french(tree))) for source, tree in _draw(count, seed).items()]


def split_pairs(train: int, held_out: int, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Draw a training set and held-out pairs, whose sentences are not in the training set."""
    training, unseen = split_aligned(train, held_out, seed)
    return training, [(pair.source, pair.target) for pair in unseen]


def sample_aligned(count: int, seed: int) -> list[AlignedPair]:
    """
    Draw sentences with their translations and word alignments, a gold set by construction.

    >>> sample_aligned(1, seed=1)[0][:2] == sample_pairs(1, seed=1)[0]
    True
    """
    return [_realize_aligned(tree) for tree in _draw(count, seed).values()]


def split_aligned(train: int, held_out: int, seed: int) -> tuple[list[Pair], list[AlignedPair]]:
    """
    Draw a training set, and sentences outside it with their word alignments.

    `train`: how many pairs to train on; at least 0. `held_out`: how many pairs to hold out; at
    least 1.

    Alignments of memorized sentences would prove little, so the sentences are new.

    Raises `ValueError` if a size is below its minimum.
    """
    training, unseen = _split(train, held_out, seed)
    pairs = [(source, _text(french(tree))) for source, tree in training]
    return pairs, [_realize_aligned(tree) for tree in unseen]


def split_trees(train: int, held_out: int, seed: int) -> tuple[list[Tree], list[Tree]]:
    """Draw the syntax trees of `split_aligned`; raises `ValueError` if a size is too small."""
    training, unseen = _split(train, held_out, seed)
    return [tree for _, tree in training], unseen


def _split(train: int, held_out: int, seed: int) -> tuple[list[tuple[str, Tree]], list[Tree]]:
    """Draw English sentences with their trees to train on, and the trees that are held out."""
    if train < 0 or held_out < 1:
        raise ValueError(
            f"train must be at least 0 and held_out at least 1, but got {train} and {held_out}"
        )
    trees = _draw(train + held_out, seed)
    trees.pop(_text(english(_SHOWPIECE)), None)
    unseen = islice(trees.values(), train, train + held_out - 1)
    return list(islice(trees.items(), train)), [_SHOWPIECE, *unseen]


def sample_trees(count: int, seed: int) -> list[Tree]:
    """Draw the syntax trees of sentences, for callers that need the roles in a sentence."""
    return list(_draw(count, seed).values())


def _draw(count: int, seed: int) -> dict[str, Tree]:
    """Draw trees with distinct English sentences."""
    author = SentenceGenerator(random.Random(seed))
    trees: dict[str, Tree] = {}
    while len(trees) < count:
        tree = author.sentence()
        words = english(tree)
        if _SHORTEST <= len(words) <= _LONGEST:
            trees[_text(words)] = tree
    return trees


def _text(tokens: Sequence[SurfaceToken]) -> str:
    """Join tokens into a line."""
    return " ".join(token.text for token in tokens)


def _realize_aligned(tree: Tree) -> AlignedPair:
    """Realize a tree in both languages and link their words."""
    source, target = english(tree), french(tree)
    is_sure_by_link = dict(links(source, target))
    sure = frozenset(link for link, is_sure in is_sure_by_link.items() if is_sure)
    return AlignedPair(_text(source), _text(target), sure, frozenset(is_sure_by_link))


SIZES = (15_000, 500, 1_000)
"""Numbers of training, validation and test pairs."""
_SEED = 1


def write_grammar_text(folder: Path, sizes: Sizes = SIZES) -> None:
    """Write training, validation and test text, and the word alignment of the test text."""
    train_pairs, valid_pairs, test_pairs = sizes
    pairs, aligned = split_aligned(train_pairs, valid_pairs + test_pairs, _SEED)
    held_out = [(pair.source, pair.target) for pair in aligned]
    parts = {"train": pairs, "valid": held_out[test_pairs:], "test": held_out[:test_pairs]}
    lines = side_files(parts, ("en", "fr"))
    links = [write_gold(GoldLinks(pair.sure, pair.possible)) for pair in aligned[:test_pairs]]
    write_lines(folder, {**lines, "test.links": links}, "the grammar")
