"""A measured number with its margin."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

# Student's t, two-sided 95 %, for 1 to 29 degrees of freedom (any table of it).
STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045),
)
_MOST_WRITTEN_OUT = 1e6
_MOST = 1e15  # of what is measured; JSON has integers that are too large for a float


def is_positive(value: Any) -> bool:
    """Whether a value of JSON is a finite number above zero, as every time and rate is."""
    return type(value) in (int, float) and 0 < value < _MOST


class Estimate(NamedTuple):
    """A measured number with its margin."""

    value: float
    """The mean of independent repeats."""
    margin: float
    """Half the width of its 95 % confidence interval."""

    @classmethod
    def of(cls, values: Sequence[float]) -> "Estimate":
        """Compute the mean and margin of 2 to 30 repeats."""
        every = np.asarray(values)
        student = STUDENT[len(every) - 2]
        return cls(float(every.mean()), student * float(every.std(ddof=1)) / math.sqrt(len(every)))

    @classmethod
    def of_many(cls, values: ArrayLike) -> "Estimate":
        """Compute them of more than 30 repeats, whose mean is as good as normal."""
        every = np.asarray(values, dtype=float)
        return cls(float(every.mean()), 1.96 * float(every.std(ddof=1)) / math.sqrt(len(every)))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval."""
        return self.value - self.margin, self.value + self.margin

    def __str__(self) -> str:
        """Write both with the digits that the margin leaves."""
        return with_margin(self.value, self.margin)

    def holds(self, value: float) -> bool:
        """Whether a value is in the interval."""
        return abs(value - self.value) <= self.margin


def with_margin(value: float, margin: float) -> str:
    """
    Write a number and its margin, which has two digits, to the same place.

    >>> with_margin(0.0672, 0.00139)
    '0.0672 ± 0.0014'
    >>> with_margin(6.9e11, 6.33e10)
    '6.90e+11 ± 6.3e+10'
    """
    if not margin:
        return f"{value:.3g} ± 0"
    place = math.floor(math.log10(abs(margin))) - 1  # of the second digit, as a power of ten
    if abs(value) >= _MOST_WRITTEN_OUT:
        digits = max(0, math.floor(math.log10(abs(value))) - place)
        return f"{value:.{digits}e} ± {margin:.1e}"
    decimals = max(0, -place)
    return f"{value:,.{decimals}f} ± {margin:,.{decimals}f}"
