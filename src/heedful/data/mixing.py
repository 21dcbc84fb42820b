"""
Several training corpora, read as one and mixed in given proportions.

The content of an epoch is a pure function of seed and epoch. A small corpus may be read several
times in an epoch, and a large corpus over several epochs. No pair is repeated before all others of
its corpus have been read.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

MOST_WEIGHT = 1e100
"""The largest weight that a corpus may have, so that no sum of weights is infinite."""


def is_weight(value: object) -> bool:
    """Whether a value from a file can be the weight of a corpus; a Boolean is not a weight."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 < value <= MOST_WEIGHT


def mixing_shares(
    sizes: Sequence[int], weights: Sequence[float] | None, temperature: float
) -> list[float]:
    """
    Compute the share of each corpus in the training pairs.

    The shares are the normalized `weights` or, without weights, the normalized
    ``size^(1/temperature)``. Arivazhagan et al. (2019, section 4.2) choose a temperature of 5 for
    corpora whose sizes differ by a factor of a thousand.

    >>> mixing_shares([900, 100], None, 1.0)
    [0.9, 0.1]
    >>> mixing_shares([900, 100], None, 2.0)
    [0.75, 0.25]
    """
    raw = np.asarray(sizes if weights is None else weights, dtype=np.float64)
    raw = raw if weights is not None else raw ** (1.0 / temperature)
    shares: list[float] = (raw / raw.sum()).tolist()
    return shares


@dataclass(frozen=True)
class Mixture:
    """
    A mixture of several corpora with fixed shares in every epoch.

    An epoch has as many pairs as all corpora together, as for a single corpus.
    """

    sizes: tuple[int, ...]
    """Number of pairs of each corpus; rows are numbered consecutively over all corpora."""
    shares: tuple[float, ...]
    """Share of each corpus in every epoch."""
    seed: int
    """Seed of the order of a corpus's pairs."""

    @property
    def counts(self) -> list[int]:
        """Number of pairs of each corpus in an epoch: its share of the total, at least one."""
        exact = np.array(self.shares) * sum(self.sizes)
        counts = np.maximum(1, np.floor(exact)).astype(int)
        missing = sum(self.sizes) - int(counts.sum())
        for index in np.argsort(counts - exact, kind="stable")[: max(0, missing)]:
            counts[index] += 1
        return [int(count) for count in counts]

    def rows(self, epoch: int) -> Int[np.ndarray, "_"]:
        """
        Return the rows of one epoch.

        `epoch`: index of the epoch, from 0.

        Corpus i is read as an endless sequence of permutations of its pairs. The random generator
        of permutation n is seeded with (seed, i, n). Each epoch continues the sequence where the
        previous epoch ended.
        """
        parts, first = [], 0
        for corpus, (size, count) in enumerate(zip(self.sizes, self.counts, strict=True)):
            begin, end = epoch * count, (epoch + 1) * count
            for number in range(begin // size, (end - 1) // size + 1):
                generator = np.random.Generator(np.random.PCG64([self.seed, corpus, number]))
                start = number * size
                chosen = generator.permutation(size)[max(begin - start, 0) : end - start]
                parts.append(chosen + first)
            first += size
        return np.concatenate(parts)
