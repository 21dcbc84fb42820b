"""
Every way to cut a word into subwords, drawn from by probability.

A unigram model gives each subword a probability, and a segmentation the product of those of its
subwords. Subword regularisation draws a segmentation with that product to the power alpha (Kudo
2018, “Subword Regularization: Improving Neural Network Translation Models with Multiple Subword
Candidates”), here among all there are: forward sums, then a walk back from the end.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache
from random import Random

_CACHED_WORDS = 1 << 17
# As in sentencepiece: so much less likely than the least likely subword is an unknown character.
_UNKNOWN_PENALTY = 10.0


class Lattice:
    """
    The segmentations of words under a unigram model.

    Parameters
    ----------
    scores : mapping of str to float
        Logarithm of each subword's probability.
    alpha : float
        Power that probabilities are raised to: 0 makes all segmentations alike, 1 follows the
        model.

    Notes
    -----
    A character that is no subword is cut off alone, as something unknown.
    """

    def __init__(self, scores: Mapping[str, float], alpha: float) -> None:
        self._scores = {piece: alpha * score for piece, score in scores.items()}
        self._longest = max(map(len, scores))
        self._unknown = alpha * (min(scores.values()) - _UNKNOWN_PENALTY)
        self._arrivals = lru_cache(_CACHED_WORDS)(self._summed)

    def sample(self, word: str, generator: Random) -> list[str]:
        """
        Draw one segmentation.

        Parameters
        ----------
        word : str
            At least one character.
        generator : Random
            Where chance comes from.

        Returns
        -------
        list of str
            Its subwords, this time.

        Notes
        -----
        From the end: which subword came last, which before it, and so on to the beginning.
        """
        arrivals, end, pieces = self._arrivals(word), len(word), []
        while end:
            starts, shares = arrivals[end]
            chosen = bisect_right(shares, generator.random() * shares[-1])
            start = starts[min(chosen, len(starts) - 1)]
            pieces.append(word[start:end])
            end = start
        return pieces[::-1]

    def _summed(self, word: str) -> list[tuple[list[int], list[float]]]:
        """List for every place where its last subword may begin, with added-up probabilities."""
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
