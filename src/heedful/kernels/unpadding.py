"""
Unpadding: everything but attention computed without padding.

Rows of a batch differ in length, and products, norms and dropout of a position need no other
position. So on a processor a stack keeps only the real tokens, one after the other as in one long
row; only attention needs to know which are a row, and puts them back where it is not compiled. The
tests hold results and gradients equal to those of padded rows.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

# With little padding the copies cost more than they save. Where that begins was chosen by hand; at
# 17 % a step of the base model took 0.89 of the time on one thread (bf16, 80 pairs).
_WORTH = 0.03
# oneDNN compiles a product for each new number of rows, which takes as long as a few hundred rows
# of a small model. So a large batch keeps some of its padding: with the recipe small,
# batches of varying size cost 4 to 6 % more than those of one size before, and nothing since. Other
# values were not compared.
_STEP, _LARGE = 64, 1024


@dataclass(frozen=True)
class Packing:
    """
    The positions of the real tokens of a batch.

    Only `heedful.kernels.attention` accepts unpadded input; other kernels need rows.
    """

    rows: int
    time: int
    """Shape of the batch."""
    places: Int[Tensor, " tokens"]
    """
    Position of each token in the batch, counted row by row: the real ones, and padding up to a
    round number.
    """
    origins: Int[Tensor, " places"]
    """Index of the token at each position; the first token at padding."""

    @cached_property
    def starts(self) -> Int[Tensor, " rows_and_one"]:
        """Index of the first token of each row, and of one behind the last."""
        counts = torch.bincount(self.places // self.time, minlength=self.rows)
        return torch.cat((counts.new_zeros(1), counts.cumsum(0)))

    @cached_property
    def in_row(self) -> Int[Tensor, " tokens"]:
        """Position of each token in its row."""
        return self.places % self.time

    @classmethod
    def of(cls, real: Bool[Tensor, "rows time"]) -> "Packing | None":
        """
        Decide whether unpadding pays for these lengths.

        Returns the unpadding; None if there is little padding.

        A function of the lengths alone, so a resumed run decides the same.
        """
        flat = real.reshape(-1)  # (rows * time,)
        count, step = int(flat.sum()), _STEP if flat.numel() >= _LARGE else 1
        more = -count % step
        if not 0 < count + more <= (1.0 - _WORTH) * flat.numel():
            return None
        filling = (~flat).nonzero().squeeze(1)[:more]
        places = flat.index_fill(0, filling, True).nonzero().squeeze(1)
        origins = torch.zeros_like(flat, dtype=torch.int64)
        origins[places] = torch.arange(len(places), device=real.device)
        return cls(real.size(0), real.size(1), places, origins)

    def pack(self, x: Float[Tensor, "rows time d_model"]) -> Float[Tensor, "1 tokens d_model"]:
        """Remove the padding."""
        out: Tensor = _Move.apply(x, self, True)
        return out

    def unpack(self, x: Float[Tensor, "1 tokens d_model"]) -> Float[Tensor, "rows time d_model"]:
        """Put the tokens back into padded rows."""
        out: Tensor = _Move.apply(x, self, False)
        return out


def gather(x: Tensor, packing: Packing) -> Tensor:
    """Remove the padding, without gradients, for functions with gradients of their own."""
    return x.reshape(-1, x.size(2)).index_select(0, packing.places).unsqueeze(0)  # (1, tokens, ..)


def scatter(x: Tensor, packing: Packing) -> Tensor:
    """Put the tokens into rows padded with zeros, without gradients."""
    out = x.new_zeros(packing.rows * packing.time, x.size(2))
    return out.index_copy_(0, packing.places, x[0]).view(packing.rows, packing.time, -1)


def repeat(x: Tensor, packing: Packing) -> Tensor:
    """
    Put the tokens into rows padded with copies of the first token, without gradients.

    Several times as fast as `scatter`; for functions that never read padding.
    """
    return x[0].index_select(0, packing.origins).view(packing.rows, packing.time, -1)


class _Move(torch.autograd.Function):
    """`gather` forwards and `scatter` backwards, or the other way round."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, packing: Packing, removes: bool) -> Tensor:
        ctx.packing, ctx.removes = packing, removes
        return gather(x, packing) if removes else scatter(x, packing)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        inverse = scatter if ctx.removes else gather
        return inverse(gradient, ctx.packing), None, None
