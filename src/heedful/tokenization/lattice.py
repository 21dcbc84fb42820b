"""
The lattice of all segmentations of a word, for sampling by probability.

A unigram model gives each subword a probability; the probability of a segmentation is the product
over its subwords. Subword regularization draws a segmentation with a probability proportional to
this product raised to the power alpha. Here all segmentations are candidates: forward sums are
computed, then a path is drawn backward from the end. Kudo (2018) describes this method in “Subword
Regularization: Improving Neural Network Translation Models with Multiple Subword Candidates”.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache
from random import Random

_CACHED_WORDS = 1 << 17
# As in sentencepiece, the score of an unknown character is this much below the lowest score.
_UNKNOWN_PENALTY = 10.0


class Lattice:
    """
    The segmentations of words under a unigram model.

    A character that is not a subword is an unknown segment of its own.
    """

    def __init__(self, scores: Mapping[str, float], alpha: float) -> None:
        self._scores = {piece: alpha * score for piece, score in scores.items()}
        self._longest = max(map(len, scores))
        self._unknown = alpha * (min(scores.values()) - _UNKNOWN_PENALTY)
        self._arrivals = lru_cache(_CACHED_WORDS)(self._cumulative_starts)

    def sample(self, word: str, generator: Random) -> list[str]:
        """Draw one segmentation."""
        arrivals, end, pieces = self._arrivals(word), len(word), []
        while end:
            starts, shares = arrivals[end]
            chosen = bisect_right(shares, generator.random() * shares[-1])
            start = starts[min(chosen, len(starts) - 1)]
            pieces.append(word[start:end])
            end = start
        return pieces[::-1]

    def _cumulative_starts(self, word: str) -> list[tuple[list[int], list[float]]]:
        """For each end, list the possible starts of the last subword, with cumulative weights."""
        forward = [0.0]
        arrivals: list[tuple[list[int], list[float]]] = [([], [])]
        for end in range(1, len(word) + 1):
            starts, sums = [], []
            for start in range(max(0, end - self._longest), end):
                score = self._scores.get(word[start:end])
                if score is None and start == end - 1:
                    score = self._unknown
                if score is not None:
                    starts.append(start)
                    sums.append(forward[start] + score)
            most = max(sums)
            shares, total = [], 0.0
            for summed in sums:
                total += math.exp(summed - most)
                shares.append(total)
            forward.append(most + math.log(total))
            arrivals.append((starts, shares))
        return arrivals
