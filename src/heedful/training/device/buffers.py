"""
Fixed memory on the device for a micro-batch, and the copying of batches into it.

A CUDA graph reads the same addresses in every replay. Batches are packed into page-locked memory of
the host, from which they are copied while the device computes. This memory may be overwritten only
after the last copy from it has ended.
"""

from collections import deque
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from heedful.kernels.api import PackedRows
from heedful.model.packed import PackedSide
from heedful.training.device.packed import PackedBatch, Room

_TYPES = {"source_starts": torch.int32, "target_starts": torch.int32, "counts": torch.bool}


def _sizes(room: Room) -> dict[str, int]:
    """Return the length of each tensor of a micro-batch."""
    return {
        "source": room.source,
        "target_in": room.target,
        "target_out": room.target,
        "source_places": room.source,
        "target_places": room.target,
        "source_starts": room.rows + 1,
        "target_starts": room.rows + 1,
        "counts": room.target,
    }


def _tensors(room: Room, device: torch.device, pinned: bool = False) -> dict[str, Tensor]:
    """Allocate the tensors of a micro-batch."""
    return {
        name: torch.zeros(
            size, dtype=_TYPES.get(name, torch.int64), device=device, pin_memory=pinned
        )
        for name, size in _sizes(room).items()
    }


class Slot:
    """Page-locked memory of the host for one micro-batch."""

    def __init__(self, room: Room, device: torch.device) -> None:
        self.tensors = _tensors(room, torch.device("cpu"), pinned=device.type == "cuda")
        self._device = device
        self._copied = torch.cuda.Event() if device.type == "cuda" else None

    def write(self, batch: PackedBatch) -> None:
        """Write a micro-batch, as soon as the previous micro-batch has been copied."""
        if self._copied is not None:
            self._copied.synchronize()
        for name, values in batch.arrays().items():
            np.copyto(self.tensors[name].numpy(), values)

    def copy_to(self, tensors: dict[str, Tensor]) -> None:
        """Start copying the micro-batch to the device."""
        for name, tensor in tensors.items():
            tensor.copy_(self.tensors[name], non_blocking=True)
        if self._copied is not None:
            self._copied.record(torch.cuda.current_stream(self._device))


class Sides(NamedTuple):
    """The two sides of a micro-batch, as inputs of the model."""

    source: PackedSide
    target_in: PackedSide


class Buffers:
    """Memory on the device for one micro-batch, and on the host for several micro-batches."""

    def __init__(self, room: Room, device: torch.device) -> None:
        self.room = room
        self.tensors = _tensors(room, device)
        self._device = device
        self._free: deque[Slot] = deque()

    def stage(self, batch: PackedBatch) -> Slot:
        """Write a micro-batch to unused memory of the host; any thread may call this."""
        try:
            slot = self._free.popleft()
        except IndexError:
            slot = Slot(self.room, self._device)
        slot.write(batch)
        return slot

    def load(self, slot: Slot) -> None:
        """Start copying a micro-batch to the device; `stage` may then reuse its host memory."""
        slot.copy_to(self.tensors)
        self._free.append(slot)

    @property
    def sides(self) -> Sides:
        """The micro-batch on the device."""
        tensors, longest = self.tensors, self.room.longest
        source, target = (
            PackedSide(
                tensors[ids].unsqueeze(0),
                tensors[f"{side}_places"],
                PackedRows(tensors[f"{side}_starts"], longest),
            )
            for ids, side in (("source", "source"), ("target_in", "target"))
        )
        return Sides(source, target)
