"""Dropout and the sum that follows it, by the C function of ``dropout.h``."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.model.native.product import FLOATS, is_plain, native_products


def can_thin(x: Tensor | None, y: Tensor) -> bool:
    """Decide whether there is a compiled function for these; of dropout alone `x` is None."""
    if native_products() is None or not is_plain(y) or y.dtype not in FLOATS:
        return False
    return x is None or (is_plain(x) and x.dtype == y.dtype and x.shape == y.shape)


def native_add_thinned(
    x: Float[Tensor, "*shape"] | None,
    y: Float[Tensor, "*shape"],
    seed: int,
    threshold: int,
    scale: float,
) -> Float[Tensor, "*shape"]:
    """
    Compute ``x + scale * y``, with y set to zero where its sixteen bits are below `threshold`.

    The bits are a function of `seed`, from 0 to 2^64 - 1, and of the element's index. Only if
    `can_thin`.
    """
    found: Tensor = _NativeAddThinned.apply(x, y, seed, threshold, scale)
    return found


class _NativeAddThinned(torch.autograd.Function):
    """The sum, which draws the same bits again in the backward pass."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor | None, y: Tensor, seed: int, threshold: int, scale: float
    ) -> Tensor:
        ctx.thinning, ctx.has_x = (seed, threshold, scale), x is not None
        return _add_thinned(x, y, *ctx.thinning)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        # by the function itself, so that there are second derivatives
        d_y = _NativeAddThinned.apply(None, gradient, *ctx.thinning)
        return gradient if ctx.has_x else None, d_y, None, None, None


def _add_thinned(x: Tensor | None, y: Tensor, seed: int, threshold: int, scale: float) -> Tensor:
    library = native_products()
    assert library is not None  # `can_thin`
    x, y = None if x is None else x.contiguous(), y.contiguous()
    out = torch.empty_like(y)
    library.add_thinned(
        *(None if x is None else x.data_ptr(), y.data_ptr(), y.numel(), seed, threshold, scale),
        *(int(y.dtype == torch.float32), torch.get_num_threads(), out.data_ptr()),
    )
    return out
