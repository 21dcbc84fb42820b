"""
Sentence pairs grouped into token-limited batches, as a pure function of (seed, epoch).

The batch of a step does not depend on the device, the number of processes, or the size of a
micro-batch. Each batch is then cut into micro-batches, which changes how much is computed at once
but not the summed gradient. A micro-batch is as wide as its longest source and its longest target;
shorter pairs are padded.

::

    pairs of an epoch, shuffled ── windows of about a million
        counting real tokens:    next pairs until `batch_tokens`       lengths mixed, as in the text
        counting padded tokens:  buckets of similar length ── blocks of `block_tokens`
                                 ── shuffled ── batch_tokens / block_tokens blocks per step
    each batch ── cut into micro-batches ── one share per rank
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from heedful.data.mixing import Mixture
from heedful.model.flops import RowLengths

Lengths = Int[np.ndarray, " pairs"]
Rows = Int[np.ndarray, "_"]
MicroBatches = list[Rows]

# On a CPU, linear layers leave padding out; attention and the copies for it do not. A step of
# Multi30k with mixed lengths took 1.05 times as long as a step with equal lengths. The value was
# not tuned.
PADDING_COST_CPU = 0.1
# Compiled attention leaves padding out as well; embeddings and masks do not. With the recipe small
# and Multi30k, batches computed at once took 0.87 of the time of batches cut into 2.7 parts.
_COST_OF_LEFT_OUT = 0.02
# A cut must save the cost of at least this many tokens, because every micro-batch has a fixed cost.
# For batches of 25,000 tokens of Europarl on one rank, a value of 100 gives 30 micro-batches. The
# useful share (real tokens / computed tokens) is then 0.92. A value of 400 gives 14 micro-batches
# and a share of 0.86; 800 gives 10 and 0.83. The cost of a micro-batch on a GPU was not measured.
_CUT_COST = 400.0
# Maximum work of a rank, relative to the mean over ranks. For 60 batches of 25,000 tokens of
# Europarl on 8 ranks, with padding as costly as real tokens:
#
#     imbalance                              1.01   1.02   1.03
#     useful share                           0.94   0.92   0.90
#     micro-batches a rank, mean             6.9    4.4    3.4
#     micro-batches a rank, largest batch    9.1    7.0    4.9
_IMBALANCE = 1.02
# Maximum number of micro-batches per rank, above the 7.0 that an imbalance of 1.02 needs.
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
        self.padding_cost = min(_COST_OF_LEFT_OUT, padding_cost) if leaves_out else padding_cost
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
        Try every cut of the pairs in two orders: by target length, and by source length.

        Returns the order, the position of the cut, and the padded tokens of both parts. The search
        is slow, so it runs on first use; most parts that are formed to balance ranks never need it.
        """
        count = np.arange(1, len(self.rows))
        cheapest = np.arange(len(self.rows)), len(self.rows) // 2, self.padded_tokens
        if len(self.rows) == 1:
            return cheapest
        for first, second in ((self.target, self.source), (self.source, self.target)):
            order = np.lexsort((second, first))
            width = np.stack((self.source[order], self.target[order]))
            # (pairs - 1,): the widths of both sides before and after each cut
            before = np.maximum.accumulate(width, axis=1).sum(0)[:-1]
            after = np.maximum.accumulate(width[:, ::-1], axis=1).sum(0)[::-1][1:]
            places = count * before + count[::-1] * after
            best = int(places.argmin())
            if places[best] < cheapest[2]:
                cheapest = order, best + 1, int(places[best])
        return cheapest

    def cut(self) -> list["_Part"]:
        """Cut the part at the point that saves the most padding, or in half if no cut saves any."""
        order, place, _ = self._best_cut
        return [
            _Part(self.rows[chosen], self.source[chosen], self.target[chosen], *self.of_padding)
            for chosen in (order[:place], order[place:])
        ]


def _share_out(parts: list[_Part], ranks: int) -> list[list[_Part]]:
    """Assign each part, the costliest first, to the rank with the least work."""
    shares: list[list[_Part]] = [[] for _ in range(ranks)]
    loads = [(0.0, rank) for rank in range(ranks)]
    for part in sorted(parts, key=lambda part: -part.cost):
        load, rank = loads[0]
        shares[rank].append(part)
        heapq.heapreplace(loads, (load + part.cost, rank))
    return shares


# Increased whenever batches are formed differently; a run resumes only with the same version.
BATCHES_VERSION = 2
# Number of pairs whose batches are formed together. A window takes a second and 100 MB.
_WINDOW = 1_000_000
# tensor2tensor 3d9c62f2, data_reader.py: buckets end at 8, 12, 16, 24, 32, 48 and so on.
_FIRST_BUCKET = 8


@dataclass(frozen=True)
class BatchOrder:
    """
    The batches of each epoch, as a pure function of (seed, epoch) (section 5.1).

    A batch has about `batch_tokens` tokens on its larger side. If real tokens are counted, its
    pairs differ in length. Only micro-batches are then “batched together by approximate sequence
    length”, as in the paper, and only if padding is computed.
    """

    source_lengths: Lengths
    """Number of source tokens of each pair, special symbols included."""
    target_lengths: Lengths
    """Number of target tokens of each pair, special symbols included."""
    batch_tokens: int
    """Number of tokens on the larger side of a batch."""
    micro_batch_tokens: int
    """
    Maximum number of tokens per side that are processed at once, padding included if it is
    computed.
    """
    counting: str
    """How tokens are counted: 'real' excludes padding, 'padded' includes padding."""
    seed: int
    """Seed of the random order."""
    mixture: Mixture | None = None
    """The mixture that an epoch's pairs are drawn from; None to read every pair once."""
    block_tokens: int | None = None
    """
    Number of tokens of a block, padding included, if `counting` is 'padded'. The maximum and
    default is `batch_tokens`.
    """
    padding_cost: float = 1.0
    """Cost of computing a padding position, relative to a real token."""
    left_out: int = 0
    """Rows of at most this many tokens are computed without padding; 0 for none."""

    def epoch(self, number: int) -> list[Rows]:
        """Return the batches of an epoch as indices of pairs."""
        rows = np.arange(len(self.source_lengths))
        if self.mixture is not None:
            rows = self.mixture.rows(number)
        order = _generator(self.seed, number).permutation(rows)
        batches: list[Rows] = []
        for index, window in enumerate(np.array_split(order, -(-len(order) // _WINDOW))):
            if self.counting == "real":
                batches += self._real(window)
            else:
                batches += self._batch_by_length(window, _generator(self.seed, number, index))
        return batches

    def cut(self, rows: Rows, ranks: int) -> list[MicroBatches]:
        """Cut a batch into micro-batches; return one list per rank."""
        # Cutting continues while a micro-batch exceeds `micro_batch_tokens` computed tokens per
        # side, while a cut saves more padding than a micro-batch costs, and while one rank has
        # clearly more work than the others.
        lengths = self.source_lengths[rows], self.target_lengths[rows]
        waiting = [_Part(rows, *lengths, self.padding_cost, self.left_out)]
        parts: list[_Part] = []
        while waiting:
            part = waiting.pop()
            too_large = part.side > self.micro_batch_tokens and len(part.rows) > 1
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

    def largest(self) -> Rows:
        """Return pairs that need the memory of any micro-batch; they are tried before step 1."""
        # Attention grows with the square of the length, so among micro-batches of this size, the
        # longest pairs need the most memory.
        lengths = np.stack((self.source_lengths, self.target_lengths))  # (2, pairs)
        longest = lengths.max(axis=0)
        order = np.argsort(-longest, kind="stable")
        first = int(longest[order[0]])
        if first > self.left_out:
            return order[: max(1, self.micro_batch_tokens // first)]
        tokens = self.micro_batch_tokens
        if self.counting == "real":
            # In a small corpus the last batch is larger than others. In 30,000 random corpora of at
            # most 120 pairs, it had up to 2.2 times `batch_tokens` tokens and those of one pair.
            tokens = min(tokens, math.ceil(2.5 * self.batch_tokens) + first)
        sides = lengths[:, order].cumsum(axis=1).max(axis=0)
        return order[: max(1, int(np.searchsorted(sides, tokens, side="right")))]

    def _real(self, order: Rows) -> list[Rows]:
        """Cut shuffled pairs into batches with about the same number of real tokens."""
        sides = (self.source_lengths[order], self.target_lengths[order])
        # (pairs + 1,) each: tokens before each pair
        sums = [np.concatenate(([0], np.cumsum(side, dtype=np.int64))) for side in sides]
        # 1. cut: all batches but the last are full
        edges = _equal_edges(sums, float(self.batch_tokens))
        # 2. round the number of batches: the last batch is distributed over the others, or receives
        # pairs from them, so that no step has only a small remainder
        last = max(int(side[edges[-1]] - side[edges[-2]]) for side in sums)
        parts = len(edges) - 2 + last / self.batch_tokens
        count = max(1, round(parts))
        # 3. cut again into that many equal batches; only the edges between them are taken
        inner = _equal_edges(sums, self.batch_tokens * parts / count)[1:count]
        edges = [0, *(edge for edge in inner if edge < len(order)), len(order)]
        return [order[first:end] for first, end in pairwise(edges)]

    def _batch_by_length(self, order: Rows, generator: np.random.Generator) -> list[Rows]:
        """Cut shuffled pairs into blocks of one length bucket, and shuffled blocks into batches."""
        block_tokens = min(self.block_tokens or self.batch_tokens, self.batch_tokens)
        longest = np.maximum(self.source_lengths[order], self.target_lengths[order])
        ends = _bucket_ends(int(longest.max()))
        bucket = np.searchsorted(ends, longest)
        blocks: list[Rows] = []
        left = order[:0]
        for number, end in enumerate(ends):
            rows = np.concatenate((left, order[bucket == number]))
            size = max(1, block_tokens // end)
            full = len(rows) // size * size
            blocks += list(rows[:full].reshape(-1, size))
            # Rows that do not fill a block join the next bucket.
            left = rows[full:]
        if len(left):
            blocks.append(left)
        blocks = [blocks[place] for place in generator.permutation(len(blocks))]
        steps = max(1, round(len(blocks) * block_tokens / self.batch_tokens))  # at most len(blocks)
        edges = [len(blocks) * step // steps for step in range(steps + 1)]
        return [np.concatenate(blocks[first:end]) for first, end in pairwise(edges)]


def _generator(*words: int) -> np.random.Generator:
    """Create a random generator seeded with these numbers."""
    return np.random.Generator(np.random.PCG64(list(words)))


def _equal_edges(sums: list[Int[np.ndarray, " edges"]], batch_tokens: float) -> list[int]:
    """
    Cut where the larger side of each part is nearest to `batch_tokens`.

    `sums` are the numbers of tokens on each side before each pair. Returns the first pair of each
    part, then the number of pairs. A part that is too large makes the next part smaller, so errors
    do not accumulate.
    """
    pairs = len(sums[0]) - 1

    def size(first: int, end: int) -> int:
        return max(int(side[end] - side[first]) for side in sums)

    edges, carried = [0], 0.0
    while edges[-1] < pairs:
        first = edges[-1]
        goal = batch_tokens + carried
        # The first edge at which one side has reached the goal. The goal is rounded up to an
        # integer, because a search for a float would first convert all sums to floats.
        reached = min(int(side.searchsorted(side[first] + math.ceil(goal))) for side in sums)
        end = min(max(reached, first + 1), pairs)
        if end > first + 1 and goal - size(first, end - 1) < size(first, end) - goal:
            end -= 1
        # A pair larger than a batch must not shrink the next batch by more than half.
        carried = max(goal - size(first, end), -0.5 * batch_tokens)
        edges.append(end)
    return edges


def _bucket_ends(longest: int) -> list[int]:
    """Return the greatest length of each bucket: 8, 12, 16, 24, 32, 48, …, `longest`."""
    ends, end = [], _FIRST_BUCKET
    while end < longest:
        ends.append(end)
        end += 1 << (end.bit_length() - 2)  # half of the largest power of two in `end`
    return [*ends, longest]


@dataclass(frozen=True)
class Batch:
    """
    A batch of pairs as padded ids.

    The decoder's input is its output “offset by one position” (section 3.1).
    """

    source: Int[Tensor, "rows source"]
    """Source ids, with the end symbol if `Collator.source_end` is set."""
    target_in: Int[Tensor, "rows target"]
    """Decoder input: the start token, then the target."""
    target_out: Int[Tensor, "rows target"]
    """Labels: the target, then the end symbol."""
    source_lengths: RowLengths
    target_lengths: RowLengths
    """The lengths of the rows on each side, end symbols included."""

    @property
    def source_tokens(self) -> int:
        """Number of real tokens, without padding."""
        return int(self.source_lengths.tokens.sum())

    @property
    def target_tokens(self) -> int:
        """Number of real tokens, without padding."""
        return int(self.target_lengths.tokens.sum())

    def to(self, device: torch.device) -> "Batch":
        """Move the tensors to a device."""
        if device.type == "cpu":
            return self

        def move(tensor: Tensor) -> Tensor:
            return tensor.pin_memory().to(device, non_blocking=True)

        return Batch(
            move(self.source),
            move(self.target_in),
            move(self.target_out),
            self.source_lengths,
            self.target_lengths,
        )


@dataclass(frozen=True)
class Collator:
    """
    A converter of ids to batches with special symbols and padding.

    Ids on disk carry no special symbols, so models with any convention can use the same data.
    """

    padding: int
    start_token: int
    end_token: int
    """Special ids."""
    source_end: bool = True
    """Whether the source ends in the end symbol."""

    def batch(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Batch:
        """
        Collate pairs.

        `sources`: source ids without special symbols. `targets`: target ids without special
        symbols, in the same order.

        Lengths include the added end symbols. The model predicts a target's end symbol like any
        other token.
        """
        target_out = pad([[*row, self.end_token] for row in targets], self.padding)
        target_in = pad([[self.start_token, *row] for row in targets], self.padding)
        lengths = (
            RowLengths.padded([len(row) + ended for row in rows])
            for rows, ended in ((sources, self.source_end), (targets, True))
        )
        return Batch(self.source(sources), target_in, target_out, *lengths)

    def source(self, sources: Sequence[Sequence[int]]) -> Int[Tensor, "rows source"]:
        """
        Collate source sentences.

        `sources`: source ids without special symbols.

        Search needs only this part of a batch.
        """
        ending = [self.end_token] if self.source_end else []
        return pad([[*row, *ending] for row in sources], self.padding)


def pad(rows: Sequence[Sequence[int]], padding: int) -> Int[Tensor, "rows longest"]:
    """Pad rows to equal length."""
    width = max(1, max(map(len, rows), default=1))
    filled = np.full((len(rows), width), padding, dtype=np.int64)
    for index, row in enumerate(rows):
        filled[index, : len(row)] = row
    return torch.from_numpy(filled)
