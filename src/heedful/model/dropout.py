"""
Dropout whose random numbers cost little on a processor.

``torch.nn.functional.dropout`` draws one double per element on a processor; measured on a small
model that is a seventh of a training step. Here sixteen random bits decide about an element, four
elements to one 64-bit number of a counter-free generator. The generator is seeded anew in each
call from torch's own, so ``torch.manual_seed`` makes everything repeatable and nothing else has to
be saved. On other devices torch's kernel is used.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

_LEVELS = 1 << 16


def keep_mask(shape: torch.Size, probability: float) -> Bool[Tensor, "*shape"]:
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
    Tensor of bool, shape `shape`
        True where the element is kept.

    Notes
    -----
    SFC64 passes the usual statistical batteries and gives about a thousand million bytes a second
    on one core; it is seeded by one 63-bit draw from torch's default generator.
    """
    count = shape.numel()
    seed = int(torch.randint(torch.iinfo(torch.int64).max, ()).item())
    words = np.random.SFC64(seed).random_raw((count + 3) // 4)
    bits = torch.from_numpy(words.view(np.int16)[:count])
    threshold = round(probability * _LEVELS) - _LEVELS // 2
    return (bits >= threshold).view(shape)


class _MaskedScale(torch.autograd.Function):
    """Multiply by a constant where the mask is true, keep one byte an element for the way back."""

    @staticmethod
    def forward(ctx, x: Tensor, keep: Tensor, scale: float) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(keep)
        ctx.scale = scale
        return (x * keep).mul_(scale)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[no-untyped-def]
        (keep,) = ctx.saved_tensors
        return (gradient * keep).mul_(ctx.scale), None, None


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
        kept_share = 1.0 - round(self.probability * _LEVELS) / _LEVELS
        out: Tensor = _MaskedScale.apply(x, keep_mask(x.shape, self.probability), 1.0 / kept_share)
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
