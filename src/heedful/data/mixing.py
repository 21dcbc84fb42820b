"""
Several training corpora: read as one, and mixed with given shares.

The content of an epoch is a pure function of seed and epoch. A small corpus is read several times
in an epoch, a large one over several epochs; no pair is repeated before all others of its corpus
have been read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray

from heedful.data.encoded.dataset import EncodedPairs

MOST_WEIGHT = 1e100
"""The largest weight of a corpus, so that no sum of weights is infinite."""


def is_weight(value: object) -> bool:
    """Whether a value from a file can be the weight of a corpus; a truth value is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 < value <= MOST_WEIGHT


def mixing_shares(
    sizes: Sequence[int], weights: Sequence[float] | None, temperature: float
) -> list[float]:
    """
    Compute the share of each corpus in the training pairs.

    ``size^(1/temperature)``, normalised: Arivazhagan et al. 2019, section 4.2, where 5 is their
    choice for corpora that differ a thousandfold.

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
    """Pairs of each corpus; rows are numbered consecutively over all corpora."""
    shares: tuple[float, ...]
    """Share of each corpus in every epoch."""
    seed: int
    """Seed of the order of a corpus's pairs."""

    @property
    def counts(self) -> list[int]:
        """Pairs of each corpus in an epoch: its share of the total, at least one."""
        exact = np.array(self.shares) * sum(self.sizes)
        counts = np.maximum(1, np.floor(exact)).astype(int)
        missing = sum(self.sizes) - int(counts.sum())
        for index in np.argsort(counts - exact, kind="stable")[: max(0, missing)]:
            counts[index] += 1
        return [int(count) for count in counts]

    def rows(self, epoch: int) -> Int[np.ndarray, "_"]:
        """
        Return the rows of one epoch.

        `epoch`: which one, counted from 0.

        Corpus i is an endless sequence: permutation after permutation of its pairs, each drawn from
        (seed, i, number). Epoch e takes the pairs from e times its count on.
        """
        parts, first = [], 0
        for corpus, (size, count) in enumerate(zip(self.sizes, self.counts, strict=True)):
            places = np.arange(epoch * count, (epoch + 1) * count)
            rounds = places // size
            part = np.empty(count, dtype=np.int64)
            for number in range(int(rounds[0]), int(rounds[-1]) + 1):
                generator = np.random.Generator(np.random.PCG64([self.seed, corpus, number]))
                chosen = rounds == number
                part[chosen] = generator.permutation(size)[places[chosen] % size]
            parts.append(part + first)
            first += size
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class JoinedPairs:  # numpydoc ignore=PR02
    """
    Several corpora read as one.

    Nothing is copied. A single corpus is read the same way, so that training has one case only.
    """

    parts: tuple[EncodedPairs, ...]
    """The corpora, in the order in which their rows are numbered."""

    def __len__(self) -> int:
        """Count the pairs."""
        return int(self._edges[-1])

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Pairs of each corpus."""
        return tuple(map(len, self.parts))

    @cached_property
    def source_lengths(self) -> NDArray[np.int32]:
        """Subwords of each source sentence, shape (pairs,)."""
        return np.concatenate([part.source_lengths for part in self.parts])

    @cached_property
    def target_lengths(self) -> NDArray[np.int32]:
        """Subwords of each target sentence, shape (pairs,)."""
        return np.concatenate([part.target_lengths for part in self.parts])

    def require_sizes(self) -> None:
        """Raise `RunFolderError` if a file has been cut off; call it before a batch is read."""
        for part in self.parts:
            part.require_sizes()

    def pair(
        self, index: int
    ) -> tuple[NDArray[np.unsignedinteger[Any]], NDArray[np.unsignedinteger[Any]]]:
        """Return the ids of both sides of a pair."""
        part = int(np.searchsorted(self._edges, index, side="right")) - 1
        return self.parts[part].pair(index - int(self._edges[part]))

    @cached_property
    def _edges(self) -> NDArray[np.int64]:
        """Return the first row of each corpus, and the end."""
        return np.cumsum([0, *self.sizes])
