"""
Leave the padding out of everything but attention.

Rows of a batch differ in length, and products, norms and dropout of a position need no other
position. So on a processor a stack keeps only the real tokens, one after the other as if they were
one long row, and attention alone puts them back into rows for the moment.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

# Below this share of padding the copies cost more than they save.
_WORTH = 0.03
# oneDNN compiles a product for each new number of rows, which takes as long as a few hundred rows
# of a small model. So a large batch keeps some of its padding.
_STEP, _LARGE = 64, 1024


@dataclass(frozen=True)
class Packing:
    """
    Know where the tokens of a batch stand.

    Attributes
    ----------
    rows, time : int
        Shape of the batch.
    places : Tensor of int, shape (tokens,)
        Where each token stands in the batch, counted row by row: the real ones and so much
        padding that their number is round.
    origins : Tensor of int, shape (rows * time,)
        Which token stands at each place; the first one where none does.

    Notes
    -----
    Only for `heedful.model.cpu.attention`; other ways of attending want rows.
    """

    rows: int
    time: int
    places: Int[Tensor, " tokens"]
    origins: Int[Tensor, " places"]

    @classmethod
    def of(cls, real: Bool[Tensor, "rows time"]) -> "Packing | None":
        """
        Look whether leaving the padding out pays.

        Parameters
        ----------
        real : Tensor of bool, shape (rows, time)
            True at real tokens.

        Returns
        -------
        Packing or None
            None if there is little padding.

        Notes
        -----
        A function of the lengths alone: a run that goes on does the same.
        """
        flat = real.reshape(-1)
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
        """
        Keep the tokens, leave the rest out.

        Parameters
        ----------
        x : Tensor of float, shape (rows, time, d_model)
            States of the batch.

        Returns
        -------
        Tensor of float, shape (1, tokens, d_model)
            States of its tokens, row after row.

        Notes
        -----
        The gradient of what is left out is zero.
        """
        out: Tensor = _Move.apply(x, self, True)
        return out

    def unpack(self, x: Float[Tensor, "1 tokens d_model"]) -> Float[Tensor, "rows time d_model"]:
        """
        Put the tokens back into rows.

        Parameters
        ----------
        x : Tensor of float, shape (1, tokens, d_model)
            States of the tokens.

        Returns
        -------
        Tensor of float, shape (rows, time, d_model)
            The same in rows, zero where there is none.

        Notes
        -----
        Undoes `pack`, but for what was left out.
        """
        out: Tensor = _Move.apply(x, self, False)
        return out


def gather(x: Tensor, packing: Packing) -> Tensor:
    """
    Take the tokens out of rows, without gradients.

    Parameters
    ----------
    x : Tensor, shape (rows, time, width)
        In rows.
    packing : Packing
        Where the tokens stand.

    Returns
    -------
    Tensor, shape (1, tokens, width)
        Only they.

    Notes
    -----
    For functions that have their own gradients.
    """
    return x.reshape(-1, x.size(2)).index_select(0, packing.places).unsqueeze(0)


def scatter(x: Tensor, packing: Packing) -> Tensor:
    """
    Put the tokens into rows with zeros in between, without gradients.

    Parameters
    ----------
    x : Tensor, shape (1, tokens, width)
        The tokens.
    packing : Packing
        Where they stand.

    Returns
    -------
    Tensor, shape (rows, time, width)
        In rows.

    Notes
    -----
    For functions that have their own gradients.
    """
    out = x.new_zeros(packing.rows * packing.time, x.size(2))
    return out.index_copy_(0, packing.places, x[0]).view(packing.rows, packing.time, -1)


def repeat(x: Tensor, packing: Packing) -> Tensor:
    """
    Put the tokens into rows with copies of the first in between, without gradients.

    Parameters
    ----------
    x : Tensor, shape (1, tokens, width)
        The tokens.
    packing : Packing
        Where they stand.

    Returns
    -------
    Tensor, shape (rows, time, width)
        In rows.

    Notes
    -----
    Several times as fast as `scatter`; for whatever never looks at padding.
    """
    return x[0].index_select(0, packing.origins).view(packing.rows, packing.time, -1)


class _Move(torch.autograd.Function):
    """Go one way forwards and the other way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, packing: Packing, inwards: bool) -> Tensor:
        ctx.packing, ctx.inwards = packing, inwards
        return gather(x, packing) if inwards else scatter(x, packing)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        way = scatter if ctx.inwards else gather
        return way(gradient, ctx.packing), None, None
