"""
Micro-batches, distributed over ranks; of similar lengths where padding is computed.

A micro-batch is as wide as its longest source and its longest target; what shorter pairs leave free
is padding. Cutting changes what is computed at once, never what is added up.
"""

import heapq
from functools import cached_property

import numpy as np
from jaxtyping import Int

Lengths = Int[np.ndarray, " pairs"]
Rows = Int[np.ndarray, "_"]
MicroBatches = list[Rows]

# On a processor products leave padding out; attention and the copies for it do not. A step of
# multi30k with mixed lengths took 1.05 of one of equal lengths; the value itself was not fitted.
PADDING_COST_CPU = 0.1
# Compiled attention leaves padding out as well; embeddings and masks do not. With the recipe small
# and Multi30k, batches computed at once took 0.87 of the time of those cut in 2.7 parts.
_COST_OF_LEFT_OUT = 0.02
# A cut must save the cost of at least this many tokens, because every micro-batch has a fixed cost.
# At 25,000 tokens of Europarl on one rank 100 gives 30 micro-batches and a useful share (real of
# computed tokens) of 0.92, 400 gives 14 and 0.86, 800 gives 10 and 0.83. The cost of a micro-batch
# on a GPU was not measured.
_CUT_COST = 400.0
# The rank with most work may have this much more than the mean. 60 batches of 25,000 tokens of
# Europarl on 8 ranks, padding as dear as real tokens:
#
#     imbalance                              1.01   1.02   1.03
#     useful share                           0.94   0.92   0.90
#     micro-batches a rank, mean             6.9    4.4    3.4
#     micro-batches a rank, largest batch    9.1    7.0    4.9
_IMBALANCE = 1.02
# Bound on micro-batches per rank, above the most that 1.02 needed.
_MOST_A_RANK = 8


class _Part:
    """Some pairs of a batch, their cost, and their best cut."""

    def __init__(
        self, rows: Rows, source: Lengths, target: Lengths, padding_cost: float, left_out: int
    ) -> None:
        self.rows, self.source, self.target = rows, source, target
        self.of_padding = padding_cost, left_out
        longest = int(max(source.max(), target.max()))
        leaves_out = longest <= left_out
        self.padding_cost = _COST_OF_LEFT_OUT if leaves_out else padding_cost
        self.padded_tokens = len(rows) * int(source.max() + target.max())
        tokens = int(source.sum() + target.sum())
        self.cost = tokens + self.padding_cost * (self.padded_tokens - tokens)
        self.side = int(max(source.sum(), target.sum())) if leaves_out else len(rows) * longest

    @property
    def gain(self) -> float:
        """Cost saved by the best cut."""
        return self.padding_cost * (self.padded_tokens - self._best_cut[2])

    @cached_property
    def _best_cut(self) -> tuple[Rows, int, int]:
        """
        Try every cut of the pairs sorted by source, and of those sorted by target.

        Returns the order, the position of the cut, and the padded tokens of both parts. Computed
        on first use: it is the slow part, and most parts made to balance ranks never need it.
        """
        count = np.arange(1, len(self.rows))
        found = np.arange(len(self.rows)), len(self.rows) // 2, self.padded_tokens
        if len(self.rows) == 1:
            return found
        for first, second in ((self.target, self.source), (self.source, self.target)):
            order = np.lexsort((second, first))
            width = np.stack((self.source[order], self.target[order]))
            # (pairs - 1,): the widths of both sides before and after each cut
            before = np.maximum.accumulate(width, axis=1).sum(0)[:-1]
            after = np.maximum.accumulate(width[:, ::-1], axis=1).sum(0)[::-1][1:]
            places = count * before + count[::-1] * after
            best = int(places.argmin())
            if places[best] < found[2]:
                found = order, best + 1, int(places[best])
        return found

    def cut(self) -> list["_Part"]:
        """Cut where that saves most padding, or in halves if it saves nothing."""
        order, place, _ = self._best_cut
        return [
            _Part(self.rows[chosen], self.source[chosen], self.target[chosen], *self.of_padding)
            for chosen in (order[:place], order[place:])
        ]


def cut_batch(
    rows: Rows,
    source_lengths: Lengths,
    target_lengths: Lengths,
    micro_batch_tokens: int,
    ranks: int,
    padding_cost: float,
    left_out: int = 0,
) -> list[MicroBatches]:
    """
    Cut a batch into micro-batches and return one list per rank.

    `left_out`: rows of at most this many tokens are computed without padding.
    """
    # Cutting continues while a micro-batch exceeds `micro_batch_tokens` computed tokens per side,
    # while a cut saves more padding than a micro-batch costs, and while one rank has clearly more
    # work than the others.
    waiting = [_Part(rows, source_lengths, target_lengths, padding_cost, left_out)]
    parts: list[_Part] = []
    while waiting:
        part = waiting.pop()
        too_large = part.side > micro_batch_tokens and len(part.rows) > 1
        if too_large or part.gain > _CUT_COST:
            waiting += part.cut()
        else:
            parts.append(part)
    shares = _share_out(parts, ranks)
    while ranks > 1 and len(parts) < _MOST_A_RANK * ranks:
        costs = [sum(part.cost for part in share) for share in shares]
        heaviest = max(shares[costs.index(max(costs))], key=lambda part: part.cost)
        if max(costs) * ranks <= _IMBALANCE * sum(costs) or len(heaviest.rows) == 1:
            break
        parts.remove(heaviest)
        parts += heaviest.cut()
        shares = _share_out(parts, ranks)
    return [[part.rows for part in share] for share in shares]


def _share_out(parts: list[_Part], ranks: int) -> list[list[_Part]]:
    """Assign each part, the costliest first, to the rank with the least work."""
    shares: list[list[_Part]] = [[] for _ in range(ranks)]
    loads = [(0.0, rank) for rank in range(ranks)]
    for part in sorted(parts, key=lambda part: -part.cost):
        load, rank = loads[0]
        shares[rank].append(part)
        heapq.heapreplace(loads, (load + part.cost, rank))
    return shares


def longest_rows(
    source_lengths: Lengths, target_lengths: Lengths, tokens: int, left_out: int = 0
) -> Rows:
    """Return the longest pairs, as many as fit into this many computed tokens per side."""
    # Attention grows with the square of the length, so they need the most memory of all
    # micro-batches of this size.
    longest = np.maximum(source_lengths, target_lengths)
    order = np.argsort(-longest, kind="stable")
    first = int(longest[order[0]])
    if first > left_out:
        return order[: max(1, tokens // first)]
    sides = np.stack((source_lengths[order], target_lengths[order])).cumsum(axis=1).max(axis=0)
    return order[: max(1, int(np.searchsorted(sides, tokens, side="right")))]
