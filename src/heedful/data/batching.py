"""
From lengths to batches: who trains together with whom, and when.

The order is a pure function of the seed and the epoch. Nothing is kept between batches but a
position in that order, so a run can stop and go on anywhere, and every rank can work out its own
share without asking the others.

::

    pairs, shuffled ── sorted by length ── micro-batches of little padding ── shuffled
        ── gathered to batches of about `batch_tokens` real tokens ── rank r takes every r-th
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Int

from heedful.data.mixing import Mixture

Lengths = Int[np.ndarray, " pairs"]
Rows = Int[np.ndarray, "_"]
MicroBatches = list[Rows]


@dataclass(frozen=True)
class BatchOrder:
    """
    Decide which pairs stand in which batch of which epoch.

    Attributes
    ----------
    source_lengths, target_lengths : ndarray of int, shape (pairs,)
        Tokens of each pair, special symbols included.
    batch_tokens : int
        About so many tokens a side make one step.
    micro_batch_tokens : int
        At most so many tokens a side, padding included, are computed at once.
    counting : {'real', 'padded'}
        Whether `batch_tokens` counts real tokens, as the paper says, or rows times longest side,
        as the authors' code does.
    seed : int
        Seed of the order.
    mixture : Mixture or None, default None
        Which pairs an epoch has; all of them, once, when absent.

    Notes
    -----
    Section 5.1: “batched together by approximate sequence length”, about 25,000 source and 25,000
    target tokens a batch. Sorting within micro-batches keeps padding small; gathering shuffled
    micro-batches keeps a batch mixed in length. A batch does not depend on the number of ranks.
    """

    source_lengths: Lengths
    target_lengths: Lengths
    batch_tokens: int
    micro_batch_tokens: int
    counting: str
    seed: int
    mixture: Mixture | None = None

    def epoch(self, number: int) -> list[MicroBatches]:
        """
        Lay out one pass over the pairs.

        Parameters
        ----------
        number : int
            Which epoch, counted from 0.

        Returns
        -------
        list of list of ndarray of int
            Batches, each a list of micro-batches, each the indices of its pairs.

        Notes
        -----
        Every pair of the epoch stands in exactly one batch. The batches are about equally large:
        no small remainder takes a full step of its own.
        """
        generator = np.random.Generator(np.random.PCG64([self.seed, number]))
        if self.mixture is None:
            order = generator.permutation(len(self.source_lengths))
        else:
            order = generator.permutation(self.mixture.rows(number))
        micro = self._micro_batches(order, generator)
        generator.shuffle(micro)
        sizes = np.array([self._size(rows) for rows in micro])
        total = int(sizes.sum())
        count = max(1, -(-total // self.batch_tokens))
        ends = np.searchsorted(np.cumsum(sizes), np.arange(1, count) * total / count)
        edges = [0, *(int(end) for end in ends), len(micro)]
        parts = [micro[first:last] for first, last in pairwise(edges)]
        return [part for part in parts if part]

    def largest(self) -> Rows:
        """
        Find the micro-batch that needs the most memory.

        Returns
        -------
        ndarray of int, shape (rows,)
            Indices of its pairs.

        Notes
        -----
        It is tried before the first step. Attention grows with the square of the length, so the
        longest pairs are the worst at equal numbers of padded tokens.
        """
        longest = np.maximum(self.source_lengths, self.target_lengths)
        order = np.argsort(-longest, kind="stable")
        width = int(longest[order[0]])
        return order[: max(1, self.micro_batch_tokens // width)]

    def _micro_batches(self, order: Rows, generator: np.random.Generator) -> MicroBatches:
        """Cut the pairs, sorted by length, where the next one would make the part too large."""
        # A little noise lets pairs of neighbouring lengths meet in other epochs.
        noise = generator.uniform(0.0, 1.5, len(order))
        keys = (self.source_lengths[order], self.target_lengths[order] + noise)
        order = order[np.lexsort((keys[0], np.floor(keys[1])))]
        source, target = self.source_lengths[order].tolist(), self.target_lengths[order].tolist()
        parts, first, widest = [], 0, 0
        for index, (s, t) in enumerate(zip(source, target, strict=True)):
            wider = max(widest, s, t)
            if index > first and (index + 1 - first) * wider > self.micro_batch_tokens:
                parts.append(order[first:index])
                first, wider = index, max(s, t)
            widest = wider
        parts.append(order[first:])
        return parts

    def _size(self, rows: Rows) -> int:
        """Count the tokens of a micro-batch's larger side the chosen way."""
        source, target = self.source_lengths[rows], self.target_lengths[rows]
        if self.counting == "padded":
            return len(rows) * max(int(source.max()), int(target.max()))
        return max(int(source.sum()), int(target.sum()))
