"""The residual blocks of ByteNet, and the unfolding that makes room for a longer target."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.arguments import check_counts, check_fields
from heedful.families.convolution import Convolution
from heedful.kernels.api import Dropout, Linear
from heedful.model.flops import RowLengths
from heedful.model.initial_weights import glorot, table
from heedful.model.weights import Initialized

Lengths = TypeVar("Lengths", int, Tensor, np.ndarray)


@dataclass(frozen=True)
class ByteNetSizes:
    """The sizes of a stack of blocks."""

    width: int
    """Width of the states between blocks, 2d in the paper."""
    channels: int
    """Width inside a block, d in the paper."""
    kernel: int
    """Number of positions that a dilated convolution reads."""
    dilations: tuple[int, ...]
    """Distance between neighboring positions that the convolution of each block reads."""
    dropout: float
    """Dropout probability of the output of each block and of the last ReLU."""
    norm_epsilon: float = 1e-6
    """Number that every layer norm adds to the variance; the default is tensor2tensor's."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_counts(width=self.width, channels=self.channels, kernel=self.kernel)

    @property
    def receptive_field(self) -> int:
        """Number of positions from the first to the last that one output depends on."""
        return 1 + (self.kernel - 1) * sum(self.dilations)


def repeated_dilations(blocks: int, largest: int) -> tuple[int, ...]:
    """List the dilation of each block: 1, 2, 4 up to the largest, then 1 again."""
    doublings = largest.bit_length()
    return tuple(2 ** (number % doublings) for number in range(blocks))


class ByteNetBlock(nn.Module):
    """A residual block: narrow, convolve and widen, each after layer norm and ReLU."""

    def __init__(self, sizes: ByteNetSizes, dilation: int, causal: bool) -> None:
        super().__init__()
        width, channels, epsilon = sizes.width, sizes.channels, sizes.norm_epsilon
        self.norm_in = nn.LayerNorm(width, eps=epsilon)
        self.proj_in = Linear(width, channels)
        self.norm_conv = nn.LayerNorm(channels, eps=epsilon)
        self.convolution = Convolution(channels, channels, sizes.kernel, dilation, causal)
        self.norm_out = nn.LayerNorm(channels, eps=epsilon)
        self.proj_out = Linear(channels, width)
        self.dropout = Dropout(sizes.dropout)

    def forward(
        self,
        x: Float[Tensor, "batch time width"],
        real: Bool[Tensor, "batch time 1"] | None = None,
    ) -> Float[Tensor, "batch time width"]:
        """Process whole sequences; the convolution reads zeros where `real` is false."""
        inner = self._narrow(x)
        if real is not None:
            inner = inner * real
        return self._widen(x, self.convolution(inner))

    def step(
        self, x: Float[Tensor, "rows width"], past: Float[Tensor, "rows span channels"]
    ) -> tuple[Float[Tensor, "rows width"], Float[Tensor, "rows span channels"]]:
        """Process one more position of a causal block. `past`: last inputs of its convolution."""
        out, past = self.convolution.step(self._narrow(x), past)
        return self._widen(x, out), past

    def _narrow(self, x: Tensor) -> Float[Tensor, "*positions channels"]:
        """Compute the input of the dilated convolution."""
        inner = self.proj_in(torch.relu(self.norm_in(x)))
        return torch.relu(self.norm_conv(inner))

    def _widen(self, x: Tensor, inner: Tensor) -> Float[Tensor, "*positions width"]:
        """Compute the block's output and add its input."""
        return self.dropout.add(x, self.proj_out(torch.relu(self.norm_out(inner))))


class Unfolding(nn.Module):
    """
    Extension of |s| source tokens to ceil(a |s|) + b columns, for a longer target.

    The settings give a and b. Columns beyond the source contain the same vector, learned or zero.
    Their number depends on the sentence alone, not on its batch.
    """

    def __init__(self, width: int, factor: float, offset: int, learned: bool) -> None:
        super().__init__()
        # the exact decimal number is needed, because 1.1 * 10 is more than 11 in floating point
        ratio = Fraction(str(factor)).limit_denominator(1000)
        self.numerator, self.denominator = ratio.numerator, ratio.denominator
        self.offset = offset
        self.padding = nn.Parameter(torch.zeros(width)) if learned else None

    def forward(
        self, x: Float[Tensor, "batch time width"], real: Bool[Tensor, "batch time"]
    ) -> tuple[Float[Tensor, "batch columns width"], Bool[Tensor, "batch columns"]]:
        """Extend each sentence to its number of columns; return zero-padded columns and a mask."""
        lengths = real.sum(dim=1, keepdim=True)  # (batch, 1)
        columns = self._room(x.size(1))
        positions = torch.arange(columns, device=x.device)
        x = x * real.unsqueeze(2)
        x = nn.functional.pad(x, (0, 0, 0, columns - x.size(1)))
        unfolded = positions < self._room(lengths)  # (batch, columns)
        if self.padding is not None:
            beyond = unfolded & (positions >= lengths)
            x = x + beyond.unsqueeze(2) * self.padding
        return x, unfolded

    def lengths(self, source: RowLengths) -> RowLengths:
        """Return the number of columns of each sentence and of each row of the batch."""
        return source.change(self._room)

    def _room(self, lengths: Lengths) -> Lengths:
        """Compute ceil(a |s|) + b."""
        return -(-lengths * self.numerator // self.denominator) + self.offset


class ByteNetStack(nn.Module, Initialized):
    """A stack of blocks, with initialization and counts of their weights."""

    def __init__(self, sizes: ByteNetSizes, causal: bool, unfolding: Unfolding | None) -> None:
        super().__init__()
        self.sizes, self.width, self.unfolding = sizes, sizes.width, unfolding
        self.blocks = nn.ModuleList(
            ByteNetBlock(sizes, dilation, causal) for dilation in sizes.dilations
        )

    @torch.no_grad()
    def initialize(self, generator: torch.Generator) -> None:
        """
        Draw all matrices within Glorot's bound; a kernel counts as one matrix over its window.

        The last matrix of a block is divided by the square root of the number of blocks, because
        nothing normalizes the sum of the blocks. Otherwise a network of 60 blocks would begin with
        a loss of 2 ln V, where V is the size of the vocabulary.
        """
        for module in self.modules():
            if isinstance(module, Linear | Convolution):
                glorot(module.weight.flatten(1), generator)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for block in self._blocks():
            block.proj_out.weight /= len(self.blocks) ** 0.5
        if self.unfolding is not None and self.unfolding.padding is not None:
            table(self.unfolding.padding.unsqueeze(0), generator)

    def initialize_table(self, weight: Tensor, generator: torch.Generator) -> None:
        """Draw an embedding table as a Transformer does."""
        table(weight, generator)

    def _weights_of_blocks(self) -> int:
        """Count the weights that multiply each position."""
        return sum(weight.numel() for weight in self.blocks.parameters() if weight.dim() > 1)

    def _blocks(self) -> Sequence[ByteNetBlock]:
        """List the blocks, typed as `ByteNetBlock`."""
        return list(self.blocks)  # type: ignore[arg-type]
