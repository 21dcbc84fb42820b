"""
A CPU attention kernel for short sequences, with explicit gradients.

The same numbers as `heedful.model.attention.scaled_dot_product_attention`, with fewer passes over
memory: by a compiled function (`heedful.model.cpu.compiled_attention`), or where there is none, by
functions of torch on padded rows. For these one copy puts the heads before the positions, and on
the way back one buffer takes the gradients of queries, keys and values side by side, as the
projection left them. In bf16 the keys are padded to whole vectors, because torch's softmax computes
the last few columns of a row one by one, four times as slowly.
"""

import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.machine.onednn import has_onednn_kernel
from heedful.machine.torch_internals import internal
from heedful.model.cpu.compiled_attention import (
    Packings,
    can_attend,
    native_short_attention,
)
from heedful.model.cpu.unpadding import gather, repeat, scatter

# Above this many keys memory traffic decides, and torch's fused kernel stores no weights. Chosen by
# hand: measured was only that this kernel is the faster one at 30 keys (`use_cpu_kernel`).
SHORT = 256
_VECTOR = 32  # bf16 numbers


def use_cpu_kernel(x: Tensor, keys: int) -> bool:
    """
    Decide whether to use this kernel.

    For a whole training step of a small model the plain one was 2.8 times as fast as torch's fused
    kernel at 30 tokens.
    """
    return keys <= SHORT and has_onednn_kernel(x)


def leaves_padding_out(stack: nn.Module, keys: int) -> bool:
    """Tell whether a stack computes without padding (`heedful.model.layout.unpad`)."""
    return use_cpu_kernel(next(stack.parameters()), keys)


def short_attention(
    qkv: Float[Tensor, "batch queries width"],
    kv: Float[Tensor, "_ keys other"] | None,
    mask: Bool[Tensor, "_ _ _ _"] | None,
    heads: int,
    d_k: int,
    packings: Packings = (None, None),
) -> Float[Tensor, "batch queries context"]:
    """
    Compute the context of all heads from unsplit projections.

    `qkv`, `kv`: as in `heedful.model.projections.Projections`. `mask`: True where the query may
    attend to the key; everywhere if None. `packings`: unpadding of queries and of keys; None for
    padded rows.

    Section 3.2. Returns no weights; `scaled_dot_product_attention` does.
    """
    if can_attend(qkv, kv, mask, heads, d_k, packings):
        return native_short_attention(qkv, kv, mask, heads, d_k, packings)
    return plain_short_attention(qkv, kv, mask, heads, d_k, packings)


def plain_short_attention(
    qkv: Float[Tensor, "batch queries width"],
    kv: Float[Tensor, "_ keys other"] | None,
    mask: Bool[Tensor, "_ _ _ _"] | None,
    heads: int,
    d_k: int,
    packings: Packings = (None, None),
) -> Float[Tensor, "batch queries context"]:
    """Compute the same by functions of torch, on padded rows."""
    found: Tensor = _ShortAttention.apply(qkv, kv, mask, heads, d_k, packings)
    return found


class _ShortAttention(torch.autograd.Function):
    """Attention that keeps the per-head copies and the weights for the backward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        qkv: Tensor,
        kv: Tensor | None,
        mask: Tensor | None,
        heads: int,
        d_k: int,
        packings: Packings,
    ) -> Tensor:
        query_packing, key_packing = packings
        # 1. rows: padding holds copies of a token, since no query attends to it and its own
        # context is dropped at the end
        qkv = qkv if query_packing is None else repeat(qkv, query_packing)
        if kv is not None and key_packing is not None:
            kv = repeat(kv, key_packing)
        # 2. heads first, the query scaled in the same pass: (batch * heads, time, d)
        width = heads * d_k
        key_value = qkv[..., width:] if kv is None else kv
        keys = key_value.size(1)
        filled = -(-keys // _VECTOR) * _VECTOR if qkv.dtype == torch.bfloat16 else keys
        query = _by_head(qkv[..., :width], heads, qkv.size(1), 1.0 / math.sqrt(d_k))
        key = _by_head(key_value[..., :width], heads, filled)
        value = _by_head(key_value[..., width:], heads, filled)
        # 3. equation 1
        scores = torch.bmm(query, key.transpose(1, 2))  # (batch * heads, queries, filled)
        mask_bias = _mask_bias(mask, keys, filled, scores)
        if mask_bias is not None:
            scores.view(key_value.size(0), heads, -1, filled).add_(mask_bias)
        weights = torch.softmax(scores, dim=-1)
        ctx.save_for_backward(query, key, value, weights)
        ctx.heads, ctx.keys, ctx.together, ctx.packings = heads, keys, kv is None, packings
        context = torch.bmm(weights, value)  # (batch * heads, queries, d_v)
        # 4. heads side by side again: (batch, queries, heads * d_v), without padding as it came
        found = torch.empty(*qkv.shape[:2], heads * value.size(2), dtype=context.dtype)
        _write(found, context, heads)
        return found if query_packing is None else gather(found, query_packing)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, weights = ctx.saved_tensors
        query_packing, key_packing = ctx.packings
        # zeros at padding, so that it adds nothing to the gradients of keys and values
        gradient = gradient if query_packing is None else scatter(gradient, query_packing)
        heads, keys, (rows, queries) = ctx.heads, ctx.keys, gradient.shape[:2]
        d_context = _by_head(gradient, heads, queries)  # (batch * heads, queries, d_v)
        d_value = torch.bmm(weights.transpose(1, 2), d_context)
        d_weights = torch.bmm(d_context, value.transpose(1, 2))
        d_scores = _softmax_gradient(d_weights, weights)
        d_query = torch.bmm(d_scores, key)
        d_key = torch.bmm(d_scores.transpose(1, 2), query)
        # one buffer in the layout of the projection: no concatenation afterwards
        width, other = heads * query.size(2), heads * (query.size(2) + value.size(2))
        d_kv: Tensor | None = None
        if ctx.together:
            d_qkv = gradient.new_empty(rows, queries, width + other)
            d_key_value = d_qkv[..., width:]
        else:
            d_qkv = gradient.new_empty(rows, queries, width)
            d_kv = d_key_value = gradient.new_empty(rows, keys, other)
        _write(d_qkv[..., :width], d_query, heads, 1.0 / math.sqrt(query.size(2)))
        _write(d_key_value[..., :width], d_key[:, :keys], heads)
        _write(d_key_value[..., width:], d_value[:, :keys], heads)
        if query_packing is not None:
            d_qkv = gather(d_qkv, query_packing)
        if d_kv is not None and key_packing is not None:
            d_kv = gather(d_kv, key_packing)
        return d_qkv, d_kv, None, None, None, None


def _softmax_gradient(gradient: Tensor, weights: Tensor) -> Tensor:
    """Compute the gradient of the scores from that of their softmax."""
    differentiate = internal("torch.ops.aten._softmax_backward_data")
    if differentiate is None:
        shares = weights.float()
        parts = gradient.float() * shares
        return (parts - shares * parts.sum(-1, keepdim=True)).to(weights.dtype)
    d_scores: Tensor = differentiate(gradient, weights, -1, weights.dtype)
    return d_scores


def _by_head(x: Tensor, heads: int, time: int, factor: float = 1.0) -> Tensor:
    """Copy (batch, time, heads * d) to (batch * heads, time, d), zero-padded, times a factor."""
    rows, there, width = x.shape
    out = x.new_empty(rows, heads, time, width // heads)  # (batch, heads, time, d)
    part = out[:, :, :there]
    source = x.unflatten(2, (heads, -1)).transpose(1, 2)  # (batch, heads, there, d)
    if factor == 1.0:
        part.copy_(source)
    else:
        torch.mul(source, factor, out=part)
    if there < time:
        out[:, :, there:].zero_()
    return out.view(rows * heads, time, -1)


def _write(out: Tensor, x: Tensor, heads: int, factor: float = 1.0) -> None:
    """Copy (batch * heads, time, d) to (batch, time, heads * d), times a factor."""
    source = x.unflatten(0, (-1, heads)).transpose(1, 2)  # (batch, time, heads, d)
    target = out.unflatten(2, (heads, -1))  # (batch, time, heads, d)
    if factor == 1.0:
        target.copy_(source)
    else:
        torch.mul(source, factor, out=target)


def _mask_bias(mask: Tensor | None, keys: int, filled: int, like: Tensor) -> Tensor | None:
    """Return the bias to add to the scores, minus infinity where attention is forbidden."""
    if mask is None:
        if filled == keys:
            return None
        mask = torch.ones(1, 1, 1, keys, dtype=torch.bool)
    mask_bias = like.new_full((*mask.shape[:3], filled), float("-inf"))
    mask_bias[..., :keys].masked_fill_(mask, 0.0)
    return mask_bias
