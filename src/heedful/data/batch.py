"""Padded tensors of a batch; the only module of this package that imports torch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from heedful.model.lengths import RowLengths


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
    source_lengths: RowLengths
    target_lengths: RowLengths
    """Tokens of each pair, end symbols included."""

    @property
    def source_tokens(self) -> int:
        """Real tokens, without padding."""
        return int(self.source_lengths.tokens.sum())

    @property
    def target_tokens(self) -> int:
        """Real tokens, without padding."""
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

        Lengths include the end symbols, which are predicted like any other.
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
