"""From the ids of some pairs to the tensors of a batch; the only torch in this package."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """
    Hold some pairs as padded ids.

    Attributes
    ----------
    source : Tensor of int, shape (rows, source)
        Source ids, the end symbol included if the model wants one.
    target_in : Tensor of int, shape (rows, target)
        What the decoder reads: the start token, then the target.
    target_out : Tensor of int, shape (rows, target)
        What it must predict: the target, then the end symbol.
    source_tokens, target_tokens : int
        Real tokens, without padding.

    Notes
    -----
    The decoder's input is its output “offset by one position” (section 3.1).
    """

    source: Int[Tensor, "rows source"]
    target_in: Int[Tensor, "rows target"]
    target_out: Int[Tensor, "rows target"]
    source_tokens: int
    target_tokens: int

    @property
    def work(self) -> tuple[int, int, int, int, int]:
        """Places of source and target, then pairs of places in the three kinds of attention."""
        rows, s = self.source.shape
        t = self.target_out.size(1)
        return rows * s, rows * t, rows * s * s, rows * t * t, rows * t * s

    def to(self, device: torch.device) -> "Batch":
        """
        Move the tensors.

        Parameters
        ----------
        device : torch.device
            Where they are needed.

        Returns
        -------
        Batch
            The same batch there.

        Notes
        -----
        Copies overlap with computation where the device allows it.
        """
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
        )


@dataclass(frozen=True)
class Collator:
    """
    Add special symbols and padding.

    Attributes
    ----------
    padding, start_token, end_token : int
        Special ids.
    source_end : bool
        Whether the source ends in the end symbol.

    Notes
    -----
    Ids on disk carry no special symbols, so the same text serves models of any convention.
    """

    padding: int
    start_token: int
    end_token: int
    source_end: bool = True

    def batch(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Batch:
        """
        Put pairs together.

        Parameters
        ----------
        sources : sequence of sequences of int
            Source ids without special symbols.
        targets : sequence of sequences of int
            Target ids without special symbols, in the same order.

        Returns
        -------
        Batch
            On the processor.

        Notes
        -----
        Tokens are counted with the end symbols, which are predicted like any other.
        """
        target_out = pad([[*row, self.end_token] for row in targets], self.padding)
        target_in = pad([[self.start_token, *row] for row in targets], self.padding)
        source_tokens = sum(map(len, sources)) + len(sources) * self.source_end
        target_tokens = sum(map(len, targets)) + len(targets)
        return Batch(self.source(sources), target_in, target_out, source_tokens, target_tokens)

    def source(self, sources: Sequence[Sequence[int]]) -> Int[Tensor, "rows source"]:
        """
        Put source sentences together.

        Parameters
        ----------
        sources : sequence of sequences of int
            Source ids without special symbols.

        Returns
        -------
        Tensor of int, shape (rows, source)
            Padded ids.

        Notes
        -----
        Search uses it alone.
        """
        ending = [self.end_token] if self.source_end else []
        return pad([[*row, *ending] for row in sources], self.padding)


def pad(rows: Sequence[Sequence[int]], padding: int) -> Int[Tensor, "rows longest"]:
    """
    Fill short rows up.

    Parameters
    ----------
    rows : sequence of sequences of int
        Ids of different lengths.
    padding : int
        What the rest is filled with.

    Returns
    -------
    Tensor of int, shape (rows, longest)
        One row each, padding at the end.

    Notes
    -----
    At least one column wide.
    """
    width = max(1, max(map(len, rows), default=1))
    filled = np.full((len(rows), width), padding, dtype=np.int64)
    for index, row in enumerate(rows):
        filled[index, : len(row)] = row
    return torch.from_numpy(filled)
