"""How far trainings that differ only in their seed lie apart, and what lies further."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from heedful.paper.estimate import STUDENT

_ORDERS = 10_000


class Noise(NamedTuple):
    """A number of several trainings of one model."""

    mean: float
    deviation: float
    """Standard deviation of one training."""
    margin: float
    """One more training lies within so much of the mean, in 95 of 100 cases."""

    @classmethod
    def of(cls, values: Sequence[float]) -> "Noise":
        """Estimate it from 2 to 30 trainings."""
        deviation = float(np.std(values, ddof=1))
        student = STUDENT[len(values) - 2]
        margin = student * deviation * math.sqrt(1 + 1 / len(values))
        return cls(float(np.mean(values)), deviation, margin)

    def exceeds(self, value: float) -> bool:
        """Whether a number lies further from the mean than another training would."""
        return abs(value - self.mean) > self.margin


def rank_correlation(first: ArrayLike, second: ArrayLike) -> float | None:
    """
    Compute Spearman's rank correlation; None if all numbers of a side are equal.

    Equal numbers share their mean rank.

    >>> rank_correlation([1, 2, 3], [10, 30, 20])
    0.5
    """
    ours, theirs = (_ranks(np.asarray(values, dtype=float)) for values in (first, second))
    if not ours.std() or not theirs.std():
        return None
    return round(float(np.corrcoef(ours, theirs)[0, 1]), 12)


def chance_of(first: ArrayLike, second: ArrayLike, seed: int = 1) -> float | None:
    """
    Compute how often numbers in a random order correlate as much, or as much the other way round.

    Of ten thousand orders; None where there is no rank correlation.

    >>> chance_of([1, 2, 3], [1, 1, 1])
    """
    ours, theirs = (_ranks(np.asarray(values, dtype=float)) for values in (first, second))
    if not ours.std() or not theirs.std():
        return None
    drawn = np.random.default_rng(seed)
    orders = drawn.permuted(np.tile(ours, (_ORDERS, 1)), axis=1)  # (orders, numbers)
    sums = (orders - ours.mean()) @ (theirs - theirs.mean())
    seen = (ours - ours.mean()) @ (theirs - theirs.mean())
    return float(np.mean(np.abs(sums) >= abs(seen) - 1e-9))


def _ranks(values: np.ndarray) -> np.ndarray:
    """Rank numbers from 0; ties get their mean."""
    less = (values[:, None] > values).sum(axis=1)
    equal = (values[:, None] == values).sum(axis=1)
    return less + (equal - 1) / 2
