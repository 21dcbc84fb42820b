"""
The score of parsed trees that heedful reports: brackets as in EVALB, but no sentence is left out.

Only the gold tags decide which words of both sides count, so a parser need not predict tags. A
sentence without a tree, or with a tree of other words, is unparsed: its gold brackets are missed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from heedful.evaluation.sufficient_statistics import SufficientStatistics
from heedful.tasks.parsing.trees.brackets import (
    BracketedSentence,
    count_crossing,
    count_matches,
    count_tags,
    counted_items,
)
from heedful.tasks.parsing.trees.evalb import NO_TAG, percent
from heedful.tasks.parsing.trees.evalb_parameters import COLLINS, EvalbParameters
from heedful.tasks.parsing.trees.tree import Tree


@dataclass(frozen=True)
class SentenceScore:
    """The counts of a sentence."""

    length: int
    """Number of words in the gold tree, as `EvalbParameters.length` counts them."""
    gold: int
    """Number of brackets in the gold tree."""
    predicted: int = 0
    """Number of brackets in the predicted tree; 0 if the sentence is unparsed."""
    matched: int = 0
    """Number of brackets that both trees have."""
    crossing: int = 0
    """Number of predicted brackets that cross a gold bracket."""
    words: int = 0
    """Number of words that count."""
    tags: int = 0
    """Number of words that count and have the gold tag."""
    is_parsed: bool = True
    """Whether there is a predicted tree with the words of the gold tree."""

    @property
    def is_exact(self) -> bool:
        """Whether all brackets match."""
        return self.is_parsed and self.matched == self.gold == self.predicted


@dataclass(frozen=True)
class TreeScore:
    """The score of some sentences, in percent."""

    sentences: tuple[SentenceScore, ...]
    has_tags: bool = True
    """Whether the predicted trees have parts of speech."""

    def total(self, count: str) -> int:
        """Sum a count over all sentences."""
        return sum(getattr(sentence, count) for sentence in self.sentences)

    @property
    def precision(self) -> float:
        """Share of the predicted brackets that are correct."""
        return percent(self.total("matched"), self.total("predicted"))

    @property
    def recall(self) -> float:
        """Share of the gold brackets that are found."""
        return percent(self.total("matched"), self.total("gold"))

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return percent(2 * self.total("matched"), self.total("predicted") + self.total("gold"))

    @property
    def exact_match(self) -> float:
        """Share of the sentences whose brackets all match."""
        return percent(self.total("is_exact"), len(self.sentences))

    @property
    def crossing(self) -> float:
        """Mean number of crossing brackets per parsed sentence."""
        return self.total("crossing") / max(self.total("is_parsed"), 1)

    @property
    def tagging(self) -> float | None:
        """Share of the words that have the gold tag; None if the predicted trees have no tags."""
        return percent(self.total("tags"), self.total("words")) if self.has_tags else None

    @property
    def unparsed(self) -> int:
        """Number of sentences without a tree of their words."""
        return len(self.sentences) - self.total("is_parsed")

    def up_to(self, length: int) -> "TreeScore":
        """Return the score of the sentences with at most `length` words."""
        short = tuple(sentence for sentence in self.sentences if sentence.length <= length)
        return TreeScore(short, self.has_tags)

    def statistics(self) -> "BracketStatistics":
        """Count matched, predicted and gold brackets for intervals and significance tests of F1."""
        rows = [
            (sentence.matched, sentence.predicted, sentence.gold) for sentence in self.sentences
        ]
        return BracketStatistics(np.array(rows, dtype=np.float64).reshape(-1, 3))

    def to_dict(self) -> dict[str, float | int | None]:
        """Convert the score to a dictionary."""
        return {
            "f1": self.f1,
            "precision": self.precision,
            "recall": self.recall,
            "exact_match": self.exact_match,
            "crossing": self.crossing,
            "tagging": self.tagging,
            "sentences": len(self.sentences),
            "unparsed": self.unparsed,
        }


class BracketStatistics(SufficientStatistics):
    """The counts of brackets for each line, and the F1 of their sums."""

    def __init__(self, counts: Float[np.ndarray, "lines 3"]) -> None:
        super().__init__(None, counts)

    def scores(self, sums: Float[np.ndarray, "selections 3"]) -> Float[np.ndarray, " selections"]:
        return 200 * sums[:, 0] / np.maximum(sums[:, 1] + sums[:, 2], 1)


def score_trees(
    gold: Sequence[Tree],
    predicted: Sequence[Tree | None],
    parameters: EvalbParameters = COLLINS,
) -> TreeScore:
    """Score predicted trees; None stands for a missing tree."""
    tags = {tag for tree in predicted if tree is not None for tag in tree.tags}
    pairs = zip(gold, predicted, strict=True)
    sentences = tuple(score_sentence(*pair, parameters) for pair in pairs)
    return TreeScore(sentences, has_tags=not tags <= {NO_TAG})


def score_sentence(
    gold: Tree, predicted: Tree | None, parameters: EvalbParameters = COLLINS
) -> SentenceScore:
    """Count the matching brackets of a predicted tree; None stands for a missing tree."""
    right = BracketedSentence.of(gold)
    counts = right.counted_words(parameters)
    wanted = right.counted_brackets(counts, parameters)
    length, words = parameters.length(right.tags), sum(counts)
    if predicted is None or not same_words(gold, predicted, parameters):
        return SentenceScore(length, len(wanted), words=words, is_parsed=False)
    predicted_sentence = BracketedSentence.of(predicted)
    predicted_brackets = predicted_sentence.counted_brackets(counts, parameters)
    return SentenceScore(
        length,
        len(wanted),
        len(predicted_brackets),
        count_matches(wanted, predicted_brackets, parameters),
        count_crossing(wanted, predicted_brackets),
        words,
        count_tags(
            counted_items(right.tags, counts),
            counted_items(predicted_sentence.tags, counts),
            parameters,
        ),
    )


def same_words(gold: Tree, predicted: Tree, parameters: EvalbParameters = COLLINS) -> bool:
    """Return whether two trees have the same words."""
    words, others = gold.words, predicted.words
    return len(words) == len(others) and all(map(parameters.same_word, words, others))
