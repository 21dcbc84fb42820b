"""Measured numbers with their margins of error, and tests of whether numbers lie within them."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

# Two-sided 95% quantiles of Student's t, for 1 to 29 degrees of freedom.
STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045),
)
_NORMAL = 1.96  # the same quantile of the normal distribution
_MOST_WRITTEN_OUT = 1e6
_ORDERS = 10_000  # random orders, to compute how often numbers correlate by chance
_MOST = 1e15  # above every measured number; integers in JSON can be too large for a float


def is_positive(value: Any) -> bool:
    """Tell whether a JSON value is a finite number above zero, as all times and rates must be."""
    return type(value) in (int, float) and 0 < value < _MOST


class Estimate(NamedTuple):
    """A measured number with its margin of error."""

    value: float
    """The mean of independent repeats."""
    margin: float
    """Half the width of its 95% confidence interval."""

    @classmethod
    def of(cls, values: Sequence[float] | Float[np.ndarray, " repeats"]) -> "Estimate":
        """Compute mean and margin of 2 or more repeats, by Student's t if there are at most 30."""
        every = np.asarray(values, dtype=float)
        student = STUDENT[len(every) - 2] if len(every) - 2 < len(STUDENT) else _NORMAL
        return cls(float(every.mean()), student * float(every.std(ddof=1)) / math.sqrt(len(every)))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% confidence interval."""
        return self.value - self.margin, self.value + self.margin

    def __str__(self) -> str:
        """Format value and margin with the digits that the margin allows."""
        return with_margin(self.value, self.margin)

    def holds(self, value: float) -> bool:
        """Tell whether a value is in the interval."""
        return abs(value - self.value) <= self.margin


class Noise(NamedTuple):
    """Mean and spread of a number over several training runs of one model."""

    mean: float
    deviation: float
    """Standard deviation over the training runs."""
    margin: float
    """Distance from the mean within which one more training lies in 95 of 100 cases."""

    @classmethod
    def of(cls, values: Sequence[float]) -> "Noise":
        """Estimate mean and deviation from 2 to 30 training runs."""
        deviation = float(np.std(values, ddof=1))
        student = STUDENT[len(values) - 2]
        margin = student * deviation * math.sqrt(1 + 1 / len(values))
        return cls(float(np.mean(values)), deviation, margin)

    def exceeds(self, value: float) -> bool:
        """Tell whether a number is farther from the mean than `margin`."""
        return abs(value - self.mean) > self.margin


def with_margin(value: float, margin: float) -> str:
    """
    Format a number and its margin to the same decimal place; the margin has two digits.

    >>> with_margin(0.0672, 0.00139)
    '0.0672 ± 0.0014'
    >>> with_margin(6.9e11, 6.33e10)
    '6.90e+11 ± 6.3e+10'
    """
    if not margin:
        return f"{value:.3g} ± 0"
    place = math.floor(math.log10(abs(margin))) - 1  # power of ten of the second digit
    if abs(value) >= _MOST_WRITTEN_OUT:
        digits = max(0, math.floor(math.log10(abs(value))) - place)
        return f"{value:.{digits}e} ± {margin:.1e}"
    decimals = max(0, -place)
    return f"{value:,.{decimals}f} ± {margin:,.{decimals}f}"


def rank_correlation(first: ArrayLike, second: ArrayLike) -> float | None:
    """
    Compute Spearman's rank correlation; None if all numbers of one sequence are equal.

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
    Compute how often random orders correlate at least as strongly, positively or negatively.

    Draws ten thousand random orders. Returns None if the rank correlation is undefined.

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
    """Rank numbers from 0; equal numbers get their mean rank."""
    less = (values[:, None] > values).sum(axis=1)
    equal = (values[:, None] == values).sum(axis=1)
    return less + (equal - 1) / 2
