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


@dataclass(frozen=True)
class Packing:
    """
    Know where the real tokens of a batch stand.

    Attributes
    ----------
    rows, time : int
        Shape of the batch.
    places : Tensor of int, shape (tokens,)
        Where each real token stands in the batch, counted row by row.
    origins : Tensor of int, shape (rows * time,)
        Which real token stands at each place; the first one where there is padding.

    Notes
    -----
    Only for `heedful.model.short_attention`; other ways of attending want rows.
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
        places = flat.nonzero().squeeze(1)
        if not 0 < len(places) <= (1.0 - _WORTH) * flat.numel():
            return None
        origins = torch.zeros_like(flat, dtype=torch.int64)
        origins[places] = torch.arange(len(places), device=real.device)
        return cls(real.size(0), real.size(1), places, origins)

    def pack(self, x: Float[Tensor, "rows time d_model"]) -> Float[Tensor, "1 tokens d_model"]:
        """
        Keep the real tokens.

        Parameters
        ----------
        x : Tensor of float, shape (rows, time, d_model)
            States of the batch.

        Returns
        -------
        Tensor of float, shape (1, tokens, d_model)
            States of its real tokens, row after row.

        Notes
        -----
        The gradient at padding is zero.
        """
        out: Tensor = _Move.apply(x, self, True)
        return out

    def unpack(self, x: Float[Tensor, "1 tokens d_model"]) -> Float[Tensor, "rows time d_model"]:
        """
        Put real tokens back into rows.

        Parameters
        ----------
        x : Tensor of float, shape (1, tokens, d_model)
            States of real tokens.

        Returns
        -------
        Tensor of float, shape (rows, time, d_model)
            The same in rows, zero at padding.

        Notes
        -----
        Undoes `pack`, but for what stood at padding.
        """
        out: Tensor = _Move.apply(x, self, False)
        return out


def gather(x: Tensor, packing: Packing) -> Tensor:
    """
    Take real tokens out of rows, without gradients.

    Parameters
    ----------
    x : Tensor, shape (rows, time, width)
        In rows.
    packing : Packing
        Where the real tokens stand.

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
    Put real tokens into rows with zeros at padding, without gradients.

    Parameters
    ----------
    x : Tensor, shape (1, tokens, width)
        Real tokens.
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
    Put real tokens into rows with a copy of the first one at padding, without gradients.

    Parameters
    ----------
    x : Tensor, shape (1, tokens, width)
        Real tokens.
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
