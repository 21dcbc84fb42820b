"""
Sentence pairs grouped into token-limited batches, as a pure function of (seed, epoch).

The batch of a step is decided first: it does not depend on how much is computed at once, on the
device, or on how many processes train. `heedful.data.micro_batches` then cuts it for them.

::

    pairs of an epoch, shuffled ── windows of about a million
        counting real tokens:    next pairs until `batch_tokens`       lengths mixed, as in the text
        counting padded tokens:  buckets of similar length ── blocks of `block_tokens`
                                 ── shuffled ── batch_tokens / block_tokens blocks a step
    each batch ── cut into micro-batches ── one share a rank
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Int

from heedful.data.micro_batches import Lengths, MicroBatches, Rows, cut_batch, longest_rows
from heedful.data.mixing import Mixture

# Changes whenever batches are formed in another way; a run resumes only with its own version.
BATCHES_VERSION = 2
# Pairs whose batches are formed together. A window takes a second and 100 MB.
_WINDOW = 1_000_000
# tensor2tensor 3d9c62f2, data_reader.py: buckets end at 8, 12, 16, 24, 32, 48 and so on.
_FIRST_BUCKET = 8


@dataclass(frozen=True)
class BatchOrder:
    """
    The batches of each epoch, as a pure function of (seed, epoch) (section 5.1).

    A batch holds about `batch_tokens` tokens of its larger side, mixed in length. The paper's
    “batched together by approximate sequence length” holds for micro-batches only, and not where
    padding is left out.
    """

    source_lengths: Lengths
    """Source tokens of each pair, special symbols included."""
    target_lengths: Lengths
    """Target tokens of each pair, special symbols included."""
    batch_tokens: int
    """Tokens of the larger side of a batch."""
    micro_batch_tokens: int
    """Most tokens a side that are computed at once, padding included unless it is left out."""
    counting: str
    """'real' counts tokens without padding, 'padded' rows times the longest side."""
    seed: int
    """Seed of the order."""
    mixture: Mixture | None = None
    """The mixture that an epoch's pairs are drawn from; None for all pairs once."""
    block_tokens: int | None = None
    """Padded tokens of a block, at most `batch_tokens`, as when None. For counting 'padded'."""
    padding_cost: float = 1.0
    """Cost of computing a padding position, relative to a real token."""
    left_out: int = 0
    """Rows of at most this many tokens are computed without padding; 0 for none."""

    def epoch(self, number: int) -> list[Rows]:
        """Return the batches of an epoch as indices of pairs; each pair of its mixture once."""
        rows = np.arange(len(self.source_lengths))
        if self.mixture is not None:
            rows = self.mixture.rows(number)
        order = _generator(self.seed, number).permutation(rows)
        batches: list[Rows] = []
        for index, window in enumerate(np.array_split(order, -(-len(order) // _WINDOW))):
            if self.counting == "real":
                batches += self._real(window)
            else:
                batches += self._padded(window, _generator(self.seed, number, index))
        return batches

    def cut(self, rows: Rows, ranks: int) -> list[MicroBatches]:
        """Cut a batch into micro-batches; return one list per rank."""
        return cut_batch(
            rows,
            self.source_lengths[rows],
            self.target_lengths[rows],
            self.micro_batch_tokens,
            ranks,
            self.padding_cost,
            self.left_out,
        )

    def largest(self) -> Rows:
        """Return the micro-batch that needs the most memory; it is tried before the first step."""
        lengths = self.source_lengths, self.target_lengths
        return longest_rows(*lengths, self.micro_batch_tokens, self.left_out)

    def _real(self, order: Rows) -> list[Rows]:
        """Cut shuffled pairs into batches of equally many real tokens."""
        sides = (self.source_lengths[order], self.target_lengths[order])
        # (pairs + 1,) each: tokens before each pair
        sums = [np.concatenate(([0], np.cumsum(side, dtype=np.int64))) for side in sides]
        # 1. cut: all batches but the last are full
        edges = _equal_edges(sums, float(self.batch_tokens))
        # 2. round the number of batches: the last one is distributed over the others, or the others
        # give to it, so that no step has only a small remainder
        last = max(int(side[edges[-1]] - side[edges[-2]]) for side in sums)
        parts = len(edges) - 2 + last / self.batch_tokens
        count = max(1, round(parts))
        # 3. cut again into that many equal batches; only the edges between them are taken
        inner = _equal_edges(sums, self.batch_tokens * parts / count)[1:count]
        edges = [0, *(edge for edge in inner if edge < len(order)), len(order)]
        return [order[first:end] for first, end in pairwise(edges)]

    def _padded(self, order: Rows, generator: np.random.Generator) -> list[Rows]:
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
            # What does not fill a block joins the next bucket.
            left = rows[full:]
        if len(left):
            blocks.append(left)
        blocks = [blocks[place] for place in generator.permutation(len(blocks))]
        steps = max(1, round(len(blocks) * block_tokens / self.batch_tokens))  # at most len(blocks)
        edges = [len(blocks) * step // steps for step in range(steps + 1)]
        return [np.concatenate(blocks[first:end]) for first, end in pairwise(edges)]


def _generator(*words: int) -> np.random.Generator:
    """Create a random generator seeded by these numbers."""
    return np.random.Generator(np.random.PCG64(list(words)))


def _equal_edges(sums: list[Int[np.ndarray, " edges"]], batch_tokens: float) -> list[int]:
    """
    Cut where the larger side of each part is nearest to `batch_tokens`.

    `sums` are the tokens of either side before each pair. Returns the first pair of each part, then
    the number of pairs. A part that is too large makes the next one smaller: errors do not add up.
    """
    pairs = len(sums[0]) - 1

    def size(first: int, end: int) -> int:
        return max(int(side[end] - side[first]) for side in sums)

    edges, carried = [0], 0.0
    while edges[-1] < pairs:
        first = edges[-1]
        goal = batch_tokens + carried
        # The first edge at which one side has reached the goal. The goal is whole, for a search
        # for a float would turn all sums into floats first.
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
