"""The interface that steps of a fixed shape need of the training pairs."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from heedful.data.batching import Rows
from heedful.training.device.packed import PackedBatch, Room
from heedful.training.trainer import BatchSource


@runtime_checkable
class PackedSource(BatchSource, Protocol):
    """Batches that can be laid out without padding."""

    def room(self, batches: Sequence[Rows]) -> Room:
        """Find a room that holds any micro-batch of these batches."""

    def pack(self, rows: Rows, room: Room) -> PackedBatch:
        """Lay pairs out in a room."""
