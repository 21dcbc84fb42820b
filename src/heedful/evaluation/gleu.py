"""
GLEU, the reward of Wu et al. 2016 (GNMT, section 5.2).

::

    GLEU = shared n-grams / the larger number of n-grams of the two texts,   n from 1 to 4

This is the smaller of precision and recall. Unlike BLEU, GLEU is symmetrical and was made for
single sentences: it has no smoothing and no brevity penalty.
"""

from collections import Counter
from collections.abc import Sequence

MOST_WORDS = 4
"""Number of words in the longest n-grams."""


def gleu_counts(hypothesis: Sequence[str], reference: Sequence[str]) -> tuple[int, int]:
    """Count the n-grams that two texts share, and the n-grams of the text that has more."""
    mine, others = _ngrams(hypothesis), _ngrams(reference)
    return (mine & others).total(), max(mine.total(), others.total())


def sentence_gleu(hypothesis: Sequence[str], reference: Sequence[str]) -> float:
    """Compute the GLEU of two lists of words, a number from 0 to 1; 0 if both are empty."""
    shared, larger = gleu_counts(hypothesis, reference)
    return shared / max(larger, 1)


def _ngrams(words: Sequence[str]) -> Counter[tuple[str, ...]]:
    """Count all n-grams of a text."""
    return Counter(
        tuple(words[start : start + order])
        for order in range(1, MOST_WORDS + 1)
        for start in range(len(words) - order + 1)
    )
