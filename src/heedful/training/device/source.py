"""The interface of training pairs for steps of fixed shapes."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from heedful.data.batching import Rows
from heedful.training.device.packed import PackedBatch, Room
from heedful.training.trainer import BatchSource


@runtime_checkable
class PackedSource(BatchSource, Protocol):
    """A source of batches that can be packed without padding."""

    def room(self, batches: Sequence[Rows]) -> Room:
        """Return a room with space for any micro-batch of these batches."""

    def pack(self, rows: Rows, room: Room) -> PackedBatch:
        """Pack pairs into a room."""
