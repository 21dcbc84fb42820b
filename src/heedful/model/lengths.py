"""
How long the rows of a batch are, for counting what a model computes on them.

::

    x x x x x      tokens 5, places 5
    x x x . .      tokens 3, places 5
    x . . . .      tokens 1, places 5

Where a family computes padding it counts places, elsewhere tokens.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

PerRow = Int[np.ndarray, " rows"]


@dataclass(frozen=True)
class RowLengths:
    """The lengths of the rows on one side of a batch."""

    tokens: PerRow
    """Real tokens."""
    places: PerRow
    """Tokens and padding."""
    by_steps: bool = False
    """Whether a search computes one position after the other, so that none sees a later one."""

    @classmethod
    def padded(cls, tokens: Sequence[int] | PerRow) -> "RowLengths":
        """Make all rows as long as the longest."""
        counted = np.asarray(tokens, dtype=np.int64)
        return cls(counted, np.full_like(counted, counted.max(initial=1)))

    @classmethod
    def unpadded(cls, tokens: Sequence[int] | PerRow, by_steps: bool = False) -> "RowLengths":
        """Let each row end with its last token."""
        counted = np.asarray(tokens, dtype=np.int64)
        return cls(counted, counted, by_steps)

    @property
    def longest(self) -> int:
        """The places of the longest row."""
        return int(self.places.max(initial=0))

    def computed(self, leaves_out: bool) -> PerRow:
        """Return the positions of each row that are computed; `leaves_out`: without padding."""
        return self.tokens if leaves_out else self.places

    def change(self, length: Callable[[PerRow], PerRow]) -> "RowLengths":
        """Change the lengths of all rows by a function."""
        return RowLengths(length(self.tokens), length(self.places), self.by_steps)


def pairs_of(positions: PerRow, by_steps: bool = False) -> int:
    """Count the pairs of two positions of a row, or of one and those up to it."""
    every = positions * (positions + 1) // 2 if by_steps else positions * positions
    return int(every.sum())
