"""Padded tensors of a batch; the only module of this package that imports torch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

# Positions of source and target, then query-key pairs of the three kinds of attention.
BatchWork = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Batch:
    """
    A batch of pairs as padded ids.

    The decoder's input is its output “offset by one position” (section 3.1).
    """

    source: Int[Tensor, "rows source"]
    """Source ids, the end symbol included if the model wants one."""
    target_in: Int[Tensor, "rows target"]
    """Decoder input: the start token, then the target."""
    target_out: Int[Tensor, "rows target"]
    """Labels: the target, then the end symbol."""
    source_tokens: int
    target_tokens: int
    """Real tokens, without padding."""

    work_without_padding: BatchWork | None = None
    """What is computed where padding is left out; None where it is computed too."""

    @property
    def work(self) -> BatchWork:
        """What is computed."""
        if self.work_without_padding is not None:
            return self.work_without_padding
        rows, s = self.source.shape
        t = self.target_out.size(1)
        return rows * s, rows * t, rows * s * s, rows * t * t, rows * t * s

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
            self.source_tokens,
            self.target_tokens,
            self.work_without_padding,
        )


@dataclass(frozen=True)
class Collator:
    """
    Collates ids into batches with special symbols and padding.

    Ids on disk carry no special symbols, so the same data serve models of any convention.
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

        Token counts include the end symbols, which are predicted like any other.
        """
        target_out = pad([[*row, self.end_token] for row in targets], self.padding)
        target_in = pad([[self.start_token, *row] for row in targets], self.padding)
        source_tokens = sum(map(len, sources)) + len(sources) * self.source_end
        target_tokens = sum(map(len, targets)) + len(targets)
        return Batch(self.source(sources), target_in, target_out, source_tokens, target_tokens)

    def source(self, sources: Sequence[Sequence[int]]) -> Int[Tensor, "rows source"]:
        """
        Collate source sentences.

        `sources`: source ids without special symbols.

        Search uses only this.
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
