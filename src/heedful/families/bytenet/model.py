"""
ByteNet: dilated convolutions, with the decoder on top of the encoder (Kalchbrenner et al. 2016).

::

    source ── embedding ── room for the target ── encoder, centered blocks ── columns c_1 c_2 …
                                                                                │   │
    target ── embedding ──────────────────────────── y_0 y_1 … ── join ─────── c_1 and y_0, …
                                                                                │
                           logits ── 1x1, ReLU ── decoder, causal blocks ───────┘

    block   x ─┬─ LN, ReLU, 1x1 ─ LN, ReLU, dilated convolution ─ LN, ReLU, 1x1 ─ + ─
               └──────────────────────────────────────────────────────────────────┘
               2d             d                            d                     2d

There is no attention. Target position t reads column t, and other columns through the convolutions.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.families.bytenet.blocks import (
    ByteNetSizes,
    ByteNetStack,
    Unfolding,
)
from heedful.families.row_state import RowState
from heedful.kernels.api import Dropout, Linear
from heedful.model.flops import DecoderFlops, RowLengths
from heedful.model.halves import (
    Memory,
    SourceEncoder,
    SourceMask,
    States,
    TargetDecoder,
    WeightLists,
)


class ByteNetEncoder(ByteNetStack, SourceEncoder):
    """
    The encoder: residual blocks of centered dilated convolutions.

    Parameters
    ----------
    sizes : ByteNetSizes
        Sizes of the blocks.
    unfolding : Unfolding, optional
        Makes room for the target of a ByteNet decoder; None for decoders that attend.

    Notes
    -----
    Section 3 of Kalchbrenner et al. 2016. Convolutions read zeros at padding, so that a sentence's
    columns do not depend on its batch.
    """

    def __init__(self, sizes: ByteNetSizes, unfolding: Unfolding | None = None) -> None:
        super().__init__(sizes, causal=False, unfolding=unfolding)

    def encode(self, x: States, mask: SourceMask, weights: list[Tensor] | None = None) -> Memory:
        real = mask[:, 0, 0]  # (batch, time)
        if self.unfolding is not None:
            x, real = self.unfolding(x, real)  # (batch, columns, d_model)
        inside = real.unsqueeze(2)
        for block in self.blocks:
            x = block(x, inside)
        return Memory(x * inside, real[:, None, None])

    def flops(self, source: RowLengths) -> int:
        return 2 * self._weights_of_blocks() * int(self.memory_lengths(source).places.sum())

    def memory_lengths(self, source: RowLengths) -> RowLengths:
        """Return the lengths of the states, which unfolding makes longer than the source."""
        return source if self.unfolding is None else self.unfolding.lengths(source)


@dataclass(frozen=True)
class ByteNetState(RowState):
    """The state of a ByteNet decoder between two steps: a `DecodingState`."""

    of_source: ClassVar[tuple[str, ...]] = ("columns",)

    pasts: tuple[Tensor, ...]
    """Inputs that each block's convolution will read again, shape (rows, span, channels)."""
    columns: Tensor
    """The encoder's columns as the join adds them, shape (sentences, columns, width)."""
    length: int = 0
    """Number of target tokens read so far."""


class ByteNetDecoder(ByteNetStack, TargetDecoder):
    """
    The decoder: residual blocks of causal dilated convolutions on top of the encoder's columns.

    Parameters
    ----------
    sizes : ByteNetSizes
        Sizes of the blocks.
    memory_width : int
        Width of the encoder's states.
    concatenated : bool, default True
        Whether column and embedding are concatenated and mapped to the width of the blocks;
        otherwise they are added, which needs equal widths.
    unfolding : Unfolding, optional
        Makes room for the target if the encoder does not.

    Notes
    -----
    Section 3 of Kalchbrenner et al. 2016. Beyond the last column, the decoder reads zeros and
    continues until the end symbol.
    """

    attends = False

    def __init__(
        self,
        sizes: ByteNetSizes,
        memory_width: int,
        concatenated: bool = True,
        unfolding: Unfolding | None = None,
    ) -> None:
        super().__init__(sizes, causal=True, unfolding=unfolding)
        # W [c; y] = W_c c + W_y y, in two parts: W_c c is computed once per sentence
        self.column_proj = self.embedding_proj = None
        if concatenated:
            self.column_proj = Linear(memory_width, sizes.width, bias=False)
            self.embedding_proj = Linear(sizes.width, sizes.width)
        self.final = Linear(sizes.width, sizes.width)
        self.final_dropout = Dropout(sizes.dropout)

    def flops(self, target: RowLengths, memory: RowLengths) -> DecoderFlops:
        columns = memory if self.unfolding is None else self.unfolding.lengths(memory)
        per_position, of_columns = self._weights_of_blocks() + self.final.weight.numel(), 0
        if self.column_proj is not None and self.embedding_proj is not None:
            per_position += self.embedding_proj.weight.numel()
            of_columns = 2 * self.column_proj.weight.numel() * int(columns.places.sum())
        return DecoderFlops(2 * per_position * int(target.places.sum()), of_columns)

    def decode(
        self,
        x: States,
        memory: Memory,
        weights: WeightLists = None,
        real: Bool[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch time width"]:
        columns, time = self._columns(memory), x.size(1)
        missing = max(0, time - columns.size(1))
        columns = nn.functional.pad(columns[:, :time], (0, 0, 0, missing))  # (batch, time, width)
        x = columns + self._join_embeddings(x)
        for block in self.blocks:
            x = block(x)
        return self._read_out(x)

    def start(self, memory: Memory) -> ByteNetState:
        columns = self._columns(memory)
        pasts = (block.convolution.first_past(len(columns), columns) for block in self._blocks())
        return ByteNetState(tuple(pasts), columns)

    def step(
        self, x: Float[Tensor, "sentences hypotheses d_model"], state: ByteNetState
    ) -> tuple[Float[Tensor, "sentences hypotheses width"], ByteNetState]:
        shape, joined = x.shape[:2], self._join_embeddings(x)
        if state.length < state.columns.size(1):
            joined = joined + state.columns[:, state.length].unsqueeze(1)
        rows, pasts = joined.flatten(0, 1), []  # (rows, width)
        for block, past in zip(self._blocks(), state.pasts, strict=True):
            rows, newer = block.step(rows, past)
            pasts.append(newer)
        newer_state = ByteNetState(tuple(pasts), state.columns, state.length + 1)
        return self._read_out(rows).unflatten(0, shape), newer_state

    def _columns(self, memory: Memory) -> Float[Tensor, "batch columns width"]:
        """Compute the columns' part of the join: zero where a sentence has no column."""
        real, states = memory.mask[:, 0, 0], memory.states
        if self.unfolding is not None:
            states, real = self.unfolding(states, real)
        states = states * real.unsqueeze(2)
        return states if self.column_proj is None else self.column_proj(states)

    def _join_embeddings(self, x: Tensor) -> Float[Tensor, "*positions width"]:
        """Compute the embeddings' part of the join."""
        return x if self.embedding_proj is None else self.embedding_proj(x)

    def _read_out(self, x: Tensor) -> Float[Tensor, "*positions width"]:
        """Compute the input of the output matrix with a final 1x1 convolution and a ReLU."""
        return self.final_dropout(torch.relu(self.final(x)))
