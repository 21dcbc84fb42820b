"""
Dropout with cheap random numbers on CPUs.

``torch.nn.functional.dropout`` draws one double per element on a CPU, which took a seventh of a
training step of a small model. Here sixteen random bits decide whether an element is kept. A
compiled function (``dropout.h``) draws the bits with Philox, scales and adds in one pass; without
it, NumPy's SFC64 draws the bits. Each call seeds the generator from torch's generator, so
``torch.manual_seed`` makes all results repeatable and no other state has to be saved. On other
devices torch's kernel is used, unless a compiler fuses dropout with neighboring operations. In a
fused kernel, a hash of each element's index decides (`hashed_bits`), because Philox takes longer
than all other operations of such a kernel.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from heedful.errors import SettingError
from heedful.kernels.native.product import FLOATS, is_plain, native_products
from heedful.kernels.torch_internals import is_plain_torch

LEVELS = 1 << 16
"""Number of possible values of an element's sixteen random bits."""


def draw_seed() -> int:
    """Draw a seed of 63 bits from torch's default generator."""
    return int(torch.randint(torch.iinfo(torch.int64).max, (), device="cpu").item())


def keep_mask(shape: torch.Size, probability: float) -> UInt8[Tensor, "*shape"]:
    """
    Draw a mask of the elements to keep, on the CPU.

    SFC64 passes the usual statistical test batteries and produces several GB/s on one core. NumPy
    compares 16-bit integers ten times as fast as torch, and torch multiplies by bytes several times
    as fast as by booleans.
    """
    count = shape.numel()
    words = np.random.SFC64(draw_seed()).random_raw((count + 3) // 4)
    threshold = drop_threshold(probability) - LEVELS // 2
    is_kept = words.view(np.int16)[:count] >= threshold
    return torch.from_numpy(is_kept.view(np.uint8)).view(shape)


def drop_threshold(probability: float) -> int:
    """Return the level below which elements are dropped; at least one level is kept."""
    return min(round(probability * LEVELS), LEVELS - 1)


class _AddThinned(torch.autograd.Function):
    """x + dropout(y), which keeps one byte per element for the backward pass."""

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
    """Compute x + scale * keep * y in one pass, rounded once."""
    start = y.new_zeros(()) if x is None else x
    return torch.addcmul(start, y, keep.to(y.dtype), value=scale)


class Dropout(nn.Module):
    """
    Dropout with a fast CPU kernel.

    `probability`: probability that an element is dropped, in [0, 1).

    Section 5.4 applies dropout to the output of each sub-layer before it is added and normalized,
    and to the sums of embeddings and positions.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        if not 0.0 <= probability < 1.0:
            raise SettingError(f"`dropout` must be at least 0 and below 1, but is {probability}.")
        self.probability = probability

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Apply dropout in training mode; otherwise return `x` unchanged."""
        if not self.training or self.probability == 0.0:
            return x
        if x.device.type != "cpu" or is_plain_torch():
            return _thin(x, self.probability)
        return self._add(None, x)

    @property
    def present_probability(self) -> float:
        """The probability that an element is currently dropped; 0 outside training."""
        return self.probability if self.training else 0.0

    def add(
        self, x: Float[Tensor, "*shape"] | None, y: Float[Tensor, "*shape"]
    ) -> Float[Tensor, "*shape"]:
        """
        Compute ``x + dropout(y)``, as every residual connection does, in one pass on a CPU.

        If `x` is None, apply dropout alone.

        The result is rounded once; two passes would round both the product and the sum.
        """
        if x is None:
            return self.forward(y)
        if not self.training or self.probability == 0.0:
            return x + y
        if y.device.type != "cpu" or is_plain_torch():
            return x + _thin(y, self.probability)
        return self._add(x, y)

    def _add(self, x: Tensor | None, y: Tensor) -> Tensor:
        """Draw the mask and add on a CPU."""
        threshold = drop_threshold(self.probability)
        scale = 1.0 / (1.0 - threshold / LEVELS)
        if can_thin(x, y):
            return native_add_thinned(x, y, draw_seed(), threshold, scale)
        keep = keep_mask(y.shape, self.probability)
        return _AddThinned.apply(x, y, keep, scale)

    def extra_repr(self) -> str:
        """Show the probability in the printed module."""
        return f"probability={self.probability}"


def _thin(x: Tensor, probability: float) -> Tensor:
    """Apply dropout with torch's kernel, or with a hash in code that torch's compiler compiles."""
    if not torch.compiler.is_compiling() or x.numel() >= torch.iinfo(torch.int32).max:
        return nn.functional.dropout(x, probability)
    keep = hashed_bits(x.numel(), draw_keys(x.device)) >= drop_threshold(probability)
    scale = 1.0 / (1.0 - drop_threshold(probability) / LEVELS)
    return torch.where(keep.view(x.shape), x * scale, 0.0)


# The multipliers of “lowbias32”, a hash found in a search for minimum bias
# (https://nullprogram.com/blog/2018/07/31/).
_FIRST, _SECOND = 0x7FEB352D, 0x846CA68B - (1 << 32)


def draw_keys(device: torch.device) -> Int[Tensor, "2"]:
    """Draw the keys of `hashed_bits` from a device's default generator."""
    words = torch.iinfo(torch.int32)
    return torch.randint(words.min, words.max, (2,), dtype=torch.int32, device=device)


def hashed_bits(count: int, keys: Int[Tensor, "2"]) -> Int[Tensor, " count"]:
    """
    Compute sixteen random bits from each element's index: integers from 0 to 2^16 - 1.

    `keys`: two numbers of 32 random bits; different keys give different bits.
    """
    x = torch.arange(count, dtype=torch.int32, device=keys.device) ^ keys[0]
    # shifts of signed numbers repeat the sign bit, so the repeated bits are masked
    x = (x ^ ((x >> 16) & 0xFFFF)) * _FIRST + keys[1]
    x = (x ^ ((x >> 15) & 0x1FFFF)) * _SECOND
    return (x >> 16) & 0xFFFF


def can_thin(x: Tensor | None, y: Tensor) -> bool:
    """Return whether there is a compiled function; `x` is None for dropout alone."""
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

    The bits are a function of `seed`, from 0 to 2^64 - 1, and of the element's index. Call only if
    `can_thin`.
    """
    return _NativeAddThinned.apply(x, y, seed, threshold, scale)


class _NativeAddThinned(torch.autograd.Function):
    """The sum `x + scale * y`; its backward pass recomputes the same bits."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor | None, y: Tensor, seed: int, threshold: int, scale: float
    ) -> Tensor:
        ctx.thinning, ctx.has_x = (seed, threshold, scale), x is not None
        return _add_thinned(x, y, *ctx.thinning)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        # the gradient uses the function itself, so that there are second derivatives
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
