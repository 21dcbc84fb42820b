"""
Dropout, addition of the sub-layer's input, and layer norm as one GPU kernel.

``LayerNorm(x + dropout(y))`` follows every sub-layer of the paper's model. The kernels of the
forward and the backward pass read each number once. The backward pass recomputes the hashed bits
(`heedful.kernels.dropout.hashed_bits`), so no mask is stored. `plain_add_norm` is the plain
equivalent.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.kernels.dropout import LEVELS, draw_keys, drop_threshold, hashed_bits
from heedful.kernels.fusion import is_fused
from heedful.kernels.varlen import tiles_of

# Maximum width of a row that one Triton program can process.
_WIDEST = 4096


def has_add_norm(x: Tensor, norm: nn.Module) -> bool:
    """Return whether there is a kernel for these rows and this norm."""
    is_plain = type(norm) is nn.LayerNorm and norm.weight is not None and norm.bias is not None
    is_small = x.size(-1) <= _WIDEST and x.numel() < torch.iinfo(torch.int32).max
    return is_fused() and is_plain and is_small and tiles_of(x) is not None


def add_and_normalize(
    x: Float[Tensor, "*batch width"],
    y: Float[Tensor, "*batch width"],
    probability: float,
    norm: Any,
) -> Float[Tensor, "*batch width"]:
    """Compute ``norm(x + dropout(y))``; call only if `has_add_norm`."""
    rows = x.flatten(0, -2), y.flatten(0, -2)
    if probability:
        threshold, keys = drop_threshold(probability), draw_keys(x.device)
    else:  # no bits are below 0, whatever the keys are
        threshold, keys = 0, x.new_empty(2, dtype=torch.int32)
    out: Tensor = add_norm(*rows, norm.weight, norm.bias, keys, threshold, norm.eps)[0]
    return out.view(x.shape)


def plain_add_norm(
    x: Float[Tensor, "rows width"],
    y: Float[Tensor, "rows width"],
    weight: Float[Tensor, " width"],
    bias: Float[Tensor, " width"],
    keys: Int[Tensor, "2"],
    threshold: int,
    epsilon: float,
) -> Float[Tensor, "rows width"]:
    """Compute `add_norm` with torch functions; elements with bits below `threshold` are dropped."""
    keep = hashed_bits(y.numel(), keys).view(y.shape) >= threshold
    total = x + torch.where(keep, y * (LEVELS / (LEVELS - threshold)), 0.0)
    return nn.functional.layer_norm(total, total.shape[-1:], weight, bias, epsilon)


@torch.library.custom_op("heedful::add_norm", mutates_args=())
def add_norm(
    x: Tensor,
    y: Tensor,
    weight: Tensor,
    bias: Tensor,
    keys: Tensor,
    threshold: int,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the normalized sums, the sums, and each row's mean and inverse standard deviation."""
    out, total, moments = tiles_of(x).add_norm(x, y, weight, bias, keys, threshold, epsilon)
    return out, total, moments


@add_norm.register_fake
def _(x: Tensor, y: Tensor, *rest: Any) -> tuple[Tensor, Tensor, Tensor]:
    del y, rest
    moments = x.new_empty(2, x.size(0), dtype=torch.float32)
    return x.new_empty(x.shape), x.new_empty(x.shape), moments


@torch.library.custom_op("heedful::add_norm_gradients", mutates_args=())
def add_norm_gradients(
    gradient: Tensor, total: Tensor, moments: Tensor, weight: Tensor, keys: Tensor, threshold: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of both summands, of the norm's weight and of its bias."""
    differentiate = tiles_of(gradient).add_norm_gradients
    d_x, d_y, d_weight, d_bias = differentiate(gradient, total, moments, weight, keys, threshold)
    return d_x, d_y, d_weight, d_bias


@add_norm_gradients.register_fake
def _(
    gradient: Tensor, total: Tensor, moments: Tensor, weight: Tensor, *rest: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    del moments, rest
    d_x, d_y = gradient.new_empty(gradient.shape), total.new_empty(total.shape)
    return d_x, d_y, weight.new_empty(weight.shape), weight.new_empty(weight.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    """Save the tensors from which the gradients are computed."""
    _, _, weight, _, keys, threshold, _ = inputs
    ctx.save_for_backward(*output[1:], weight, keys)
    ctx.threshold = threshold


def _differentiate(ctx: Any, gradient: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    """Compute the gradients of all inputs."""
    gradients = add_norm_gradients(gradient, *ctx.saved_tensors, ctx.threshold)
    return (*gradients, None, None, None)


add_norm.register_autograd(_differentiate, setup_context=_keep)
