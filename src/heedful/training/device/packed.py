"""
Batches without padding for a GPU: sentences are packed into tensors of fixed size.

::

    room 12     B a b c B d B e f . . .        real tokens: starts 0 4 6 9
                                  ^ filling: sentences that no sum or loss includes

A `Room` contains the sizes, which are the same in every step. Free space is filled with sentences
of padding, which are not longer than `Room.longest`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from heedful.data.batching import Collator, Lengths, Rows
from heedful.data.encoded.dataset import FlatIds
from heedful.model.flops import RowLengths

Numbers = Int[np.ndarray, "_"]

# Room sizes are multiples of this number, so that most epochs need the same room.
_STEP = 128


class Room(NamedTuple):
    """The sizes of the tensors into which every micro-batch is packed."""

    source: int
    target: int
    """Number of tokens on each side."""
    rows: int
    """Number of sentences, including sentences of padding."""
    longest: int
    """Maximum number of tokens of a sentence on either side."""

    @classmethod
    def of(
        cls,
        source: int,
        target: int,
        rows: int,
        longest: int,
    ) -> "Room":
        """Make a room from numbers of tokens and sentences, rounded up."""
        longest = -(-longest // 8) * 8
        source, target = (-(-tokens // _STEP) * _STEP for tokens in (source, target))
        room = cls(source, target, 0, longest)
        return room._replace(rows=-(-(rows + room.filling) // _STEP) * _STEP)

    @property
    def filling(self) -> int:
        """Number of sentences of maximum length that fill the larger side."""
        return -(-max(self.source, self.target) // self.longest)

    @classmethod
    def of_batches(
        cls, batches: Sequence[Rows], source_lengths: Lengths, target_lengths: Lengths, most: int
    ) -> "Room":
        """
        Make a room that is large enough for any micro-batch of these batches.

        `source_lengths, target_lengths`: number of tokens of every pair, special symbols included.
        `most`: maximum number of tokens per side of a micro-batch of several pairs.
        """
        edges = np.cumsum([0, *map(len, batches)])[:-1]
        every = np.concatenate([*batches])
        longest = int(max(source_lengths.max(), target_lengths.max()))
        source, target = (
            max(longest, min(int(np.add.reduceat(lengths[every], edges).max()), most))
            for lengths in (source_lengths, target_lengths)
        )
        return cls.of(source, target, max(map(len, batches)), longest)

    def holds(self, other_room: "Room") -> bool:
        """Return whether batches for another room fit into this room."""
        return self == self.joined(other_room)

    def joined(self, other_room: "Room") -> "Room":
        """Make a room that is large enough for any batch of either room."""
        room = Room(*map(max, self, other_room))
        # a side with more tokens may need more sentences of padding than either of the two rooms
        pairs = max(part.rows - part.filling for part in (self, other_room))
        return room._replace(rows=max(room.rows, pairs + room.filling))


@dataclass(frozen=True)
class PackedBatch:
    """A packed batch of pairs; starts are 32-bit integers, ids and positions 64-bit integers."""

    source: Numbers
    target_in: Numbers
    target_out: Numbers
    """Token ids, shape (tokens,): encoder input, decoder input, and tokens to predict."""
    source_places: Numbers
    target_places: Numbers
    """Position of each token in its sentence, shape (tokens,)."""
    source_starts: Numbers
    target_starts: Numbers
    """Start of each sentence, and then the end of the last sentence; shape (rows + 1,)."""
    counts: Bool[np.ndarray, " tokens"]
    """True at real target tokens."""
    source_lengths: RowLengths
    target_lengths: RowLengths
    """Number of tokens of each real pair, end symbols included."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that are copied to the device, by name."""
        names = ("source", "target_in", "target_out", "source_places", "target_places")
        more = ("source_starts", "target_starts", "counts")
        return {name: getattr(self, name) for name in (*names, *more)}


def pack(source: FlatIds, target: FlatIds, collator: Collator, room: Room) -> PackedBatch:
    """Add special symbols, pack the pairs, and fill the remaining space with padding."""
    ended = int(collator.source_end)
    source_lengths, target_lengths = source.lengths + ended, target.lengths + 1
    filling = _filling(
        room.source - int(source_lengths.sum()), room.target - int(target_lengths.sum()), room
    )
    sides = (source_lengths, filling[0]), (target_lengths, filling[1])
    source_starts, target_starts = (_starts(*side, room.rows) for side in sides)
    target_tokens = int(target_lengths.sum())
    return PackedBatch(
        _lay_out(source, 0, collator.end_token, ended, room.source, collator.padding),
        _lay_out(target, 1, collator.start_token, 1, room.target, collator.padding),
        _lay_out(target, 0, collator.end_token, 1, room.target, collator.padding),
        _places(source_starts),
        _places(target_starts),
        source_starts.astype(np.int32),
        target_starts.astype(np.int32),
        np.arange(room.target) < target_tokens,
        RowLengths.unpadded(source_lengths),
        RowLengths.unpadded(target_lengths),
    )


def _lay_out(
    side: FlatIds, shift: int, special: int, added: int, size: int, padding: int
) -> Numbers:
    """Pack ids with a special symbol before (`shift` 1) or after (`shift` 0) each sentence."""
    out = np.full(size, padding, dtype=np.int64)
    tokens = len(side.ids) + added * len(side.lengths)
    out[:tokens] = special
    # each sentence moves by the number of special symbols before it
    moved = np.repeat(np.arange(len(side.lengths)) * added + shift, side.lengths)
    out[np.arange(len(side.ids)) + moved] = side.ids
    return out


def _filling(source: int, target: int, room: Room) -> tuple[Numbers, Numbers]:
    """Divide the free space of each side into the same number of sentences; some may be empty."""
    count = max(-(-source // room.longest), -(-target // room.longest))
    sides = (
        np.full(count, left // max(count, 1)) + (np.arange(count) < left % max(count, 1))
        for left in (source, target)
    )
    first, second = sides
    return first, second


def _starts(lengths: Numbers, filling: Numbers, rows: int) -> Numbers:
    """Return the start of each sentence; the remaining sentences of the room are empty."""
    starts = np.zeros(rows + 1, dtype=np.int64)
    every = np.concatenate((lengths, filling))
    starts[1 : len(every) + 1] = np.cumsum(every)
    starts[len(every) + 1 :] = starts[len(every)]
    return starts


def _places(starts: Numbers) -> Numbers:
    """Return the position of each token in its sentence."""
    return np.arange(int(starts[-1])) - np.repeat(starts[:-1], np.diff(starts))
