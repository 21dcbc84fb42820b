"""
GLEU, the reward of Wu et al. 2016 (GNMT, section 5.2).

::

    GLEU = shared n-grams / the larger number of n-grams of the two texts,   n from 1 to 4

This is the smaller of precision and recall. Unlike BLEU, GLEU is symmetrical and was made for
single sentences: it has no smoothing and no brevity penalty.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

MOST_WORDS = 4
"""The longest n-grams."""


class GleuCounts(NamedTuple):
    """Counts of one sentence or, added up, of many."""

    shared: int
    """N-grams in both texts, each counted as often as in the text with fewer of it."""
    larger: int
    """N-grams of the text with more n-grams."""

    @property
    def gleu(self) -> float:
        """Compute GLEU, from 0 to 1; 0 for two empty texts."""
        return self.shared / self.larger if self.larger else 0.0


def gleu_counts(hypothesis: Sequence[str], reference: Sequence[str]) -> GleuCounts:
    """Count the n-grams of two texts, given as words."""
    mine, others = _ngrams(hypothesis), _ngrams(reference)
    return GleuCounts((mine & others).total(), max(mine.total(), others.total()))


def sentence_gleu(hypothesis: Sequence[str], reference: Sequence[str]) -> float:
    """Compute GLEU of a sentence, given as words; equal to nltk's for one reference."""
    return gleu_counts(hypothesis, reference).gleu


def corpus_gleu(counts: Iterable[GleuCounts]) -> float:
    """Compute GLEU of a text from the counts of its sentences; equal to nltk's."""
    shared, larger = map(sum, zip((0, 0), *counts, strict=True))
    return GleuCounts(shared, larger).gleu


def _ngrams(words: Sequence[str]) -> Counter[tuple[str, ...]]:
    """Count all n-grams of a text."""
    return Counter(
        tuple(words[start : start + order])
        for order in range(1, MOST_WORDS + 1)
        for start in range(len(words) - order + 1)
    )
