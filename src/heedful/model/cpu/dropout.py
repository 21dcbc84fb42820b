"""
Dropout whose random numbers cost little on a processor.

``torch.nn.functional.dropout`` draws one double per element on a processor; measured on a small
model that is a seventh of a training step. Here sixteen random bits decide about an element, four
elements to one 64-bit number of a counter-free generator. The generator is seeded anew in each
call from torch's own, so ``torch.manual_seed`` makes everything repeatable and nothing else has to
be saved. On other devices torch's kernel is used.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

_LEVELS = 1 << 16


def keep_mask(shape: torch.Size, probability: float) -> UInt8[Tensor, "*shape"]:
    """
    Draw which elements survive, on the processor.

    Parameters
    ----------
    shape : torch.Size
        Shape of the tensor that will be thinned out.
    probability : float
        Probability of dropping an element, rounded to a multiple of 2^-16.

    Returns
    -------
    Tensor of uint8, shape `shape`
        1 where the element is kept, else 0.

    Notes
    -----
    SFC64 passes the usual statistical batteries and gives several thousand million bytes a second
    on one core; it is seeded by one 63-bit draw from torch's default generator. numpy compares
    sixteen-bit numbers ten times as fast as torch, and torch multiplies by bytes several times as
    fast as by truth values.
    """
    count = shape.numel()
    seed = int(torch.randint(torch.iinfo(torch.int64).max, ()).item())
    words = np.random.SFC64(seed).random_raw((count + 3) // 4)
    threshold = round(probability * _LEVELS) - _LEVELS // 2
    kept = words.view(np.int16)[:count] >= threshold
    return torch.from_numpy(kept.view(np.uint8)).view(shape)


class _AddThinned(torch.autograd.Function):
    """Add what the mask leaves of `y`, scaled; keep one byte an element for the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor | None, y: Tensor, keep: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(keep)
        ctx.scale, ctx.has_x = scale, x is not None
        return _add_product(x, y, keep, scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, None, None]:
        (keep,) = ctx.saved_tensors
        d_y = _add_product(None, gradient, keep, ctx.scale)
        return gradient if ctx.has_x else None, d_y, None, None


def _add_product(x: Tensor | None, y: Tensor, keep: Tensor, scale: float) -> Tensor:
    """Compute x + scale * keep * y in one pass, rounding once."""
    start = y.new_zeros(()) if x is None else x
    return torch.addcmul(start, y, keep.to(y.dtype), value=scale)


class Dropout(nn.Module):
    """
    Set elements to zero at random while training and scale up the others.

    Parameters
    ----------
    probability : float
        Share of the elements that is dropped, in [0, 1).

    Notes
    -----
    Section 5.4 of the paper: on the output of each sub-layer before it is added and normalised,
    and on the sums of embeddings and positions; nowhere else.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """
        Thin out `x` in training mode, else return it as it is.

        Parameters
        ----------
        x : Tensor of float, any shape
            What goes in.

        Returns
        -------
        Tensor of float, same shape
            The surviving elements divided by the probability of surviving.

        Notes
        -----
        The mean over many draws is `x` itself.
        """
        if not self.training or self.probability == 0.0:
            return x
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.probability)
        return self._add(None, x)

    def add(
        self, x: Float[Tensor, "*shape"], y: Float[Tensor, "*shape"]
    ) -> Float[Tensor, "*shape"]:
        """
        Compute ``x + dropout(y)``.

        Parameters
        ----------
        x : Tensor of float, any shape
            Left as it is.
        y : Tensor of float, same shape
            Thinned out in training mode.

        Returns
        -------
        Tensor of float, same shape
            The sum.

        Notes
        -----
        What every residual connection does; in one pass on a processor.
        """
        if not self.training or self.probability == 0.0 or y.device.type != "cpu":
            return x + self(y)
        return self._add(x, y)

    def _add(self, x: Tensor | None, y: Tensor) -> Tensor:
        """Draw and add on a processor."""
        kept_share = 1.0 - round(self.probability * _LEVELS) / _LEVELS
        keep = keep_mask(y.shape, self.probability)
        out: Tensor = _AddThinned.apply(x, y, keep, 1.0 / kept_share)
        return out

    def extra_repr(self) -> str:
        """
        Show the probability in the printed module.

        Returns
        -------
        str
            Text between the brackets.

        Notes
        -----
        Called by ``torch.nn.Module.__repr__``.
        """
        return f"probability={self.probability}"
