"""
CPU attention kernels for short sequences and for a step of a search, with explicit gradients.

The results equal `heedful.model.attention.scaled_dot_product_attention`, with fewer passes over
memory. They are computed by the C functions of ``short_attention.h``, or by functions of torch on
padded rows. For torch's functions, one copy puts the heads before the positions. In the backward
pass, one buffer receives the gradients of queries, keys and values in the layout of the projection.
In bf16, the number of keys is padded to a multiple of the vector width. Otherwise torch's softmax
would compute the remaining columns of a row one by one, four times as slowly.

In a step of a search a few queries of each sentence attend to keys and values in a cache.
"""

import ctypes
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from heedful.kernels.linear import has_onednn_kernel, join, lie_side_by_side
from heedful.kernels.native.product import FLOATS, is_plain, native_products
from heedful.kernels.torch_internals import internal, is_plain_torch

# Minimum share of padding at which padding is removed; with less padding, the copies may cost more
# than they save. The share was chosen by hand. With 17% padding, removing the padding reduced the
# time of a step of the base model to 0.89 of the time on one thread (bf16, 80 pairs).
_WORTH = 0.03
# oneDNN compiles a kernel for each new number of rows, which takes as long as computing a few
# hundred rows of a small model. So a batch keeps padding up to a multiple of the second number,
# if it has at least as many positions as the first. With the recipe `small`, batches of varying
# size without this padding cost 4 to 6% more than batches of one size; with multiples of 64 they
# cost the same. With `tiny` and batches of 128 to 512 tokens, 200 steps took 0.73 to 0.83 of the
# time with multiples of 16, and about as long with multiples of 8, 32 or 64 as of 16.
_STEPS = ((1024, 64), (64, 16))


@dataclass(frozen=True)
class Packing:
    """The positions of the real tokens of a batch, for attention without padding."""

    rows: int
    time: int
    """Shape of the batch."""
    places: Int[Tensor, " tokens"]
    """
    Position in the batch of each token that is kept, counted row by row: real tokens, and padding
    up to a multiple from `_STEPS`.
    """
    origins: Int[Tensor, " places"]
    """Index of the token at each position; 0, the first token, at padding."""

    @cached_property
    def starts(self) -> Int[Tensor, " rows_and_one"]:
        """Index of the first token of each row, and of the end of the last row."""
        counts = torch.bincount(self.places // self.time, minlength=self.rows)
        return torch.cat((counts.new_zeros(1), counts.cumsum(0)))

    @cached_property
    def in_row(self) -> Int[Tensor, " tokens"]:
        """Position of each token in its row."""
        return self.places % self.time

    @classmethod
    def of(cls, real: Bool[Tensor, "rows time"]) -> "Packing | None":
        """
        Return the positions of real tokens, or None if there is little padding.

        The result depends on the lengths alone, so a resumed run decides in the same way.
        """
        flat = real.reshape(-1)  # (rows * time,)
        count = int(flat.sum())
        step = next((step for least, step in _STEPS if flat.numel() >= least), 1)
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
        return _Move.apply(x, self, True)

    def unpack(self, x: Float[Tensor, "1 tokens d_model"]) -> Float[Tensor, "rows time d_model"]:
        """Put the tokens back into padded rows."""
        return _Move.apply(x, self, False)


def gather(x: Tensor, packing: Packing) -> Tensor:
    """Remove the padding, without gradients, for functions that define their own gradients."""
    return x.reshape(-1, x.size(2)).index_select(0, packing.places).unsqueeze(0)  # (1, tokens, ..)


def scatter(x: Tensor, packing: Packing) -> Tensor:
    """Put the tokens into rows padded with zeros, without gradients."""
    out = x.new_zeros(packing.rows * packing.time, x.size(2))
    return out.index_copy_(0, packing.places, x[0]).view(packing.rows, packing.time, -1)


def repeat(x: Tensor, packing: Packing) -> Tensor:
    """Put the tokens into rows padded with copies of the first token, without gradients."""
    # several times as fast as `scatter`; for functions that never read padding
    return x[0].index_select(0, packing.origins).view(packing.rows, packing.time, -1)


class _Move(torch.autograd.Function):
    """`gather` in the forward pass and `scatter` in the backward pass, or the reverse."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, packing: Packing, removes: bool) -> Tensor:
        ctx.packing, ctx.removes = packing, removes
        return gather(x, packing) if removes else scatter(x, packing)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        inverse = scatter if ctx.removes else gather
        return inverse(gradient, ctx.packing), None, None


# Positions of the real queries and of the real keys; None for padded rows.
Packings = tuple[Packing | None, Packing | None]

# With more keys than this number, memory traffic determines the speed, and torch's fused kernel has
# the advantage that it stores no weights. The number was chosen by hand. The only measurement was
# at 30 tokens: a training step of a small model was 2.8 times as fast with the plain kernel as with
# torch's fused kernel.
SHORT = 256
_VECTOR = 32  # number of bf16 values in a vector


def use_cpu_kernel(x: Tensor, keys: int) -> bool:
    """Return whether to use `short_attention`."""
    return keys <= SHORT and has_onednn_kernel(x)


def leaves_padding_out(stack: nn.Module, keys: int) -> bool:
    """Return whether a stack computes without padding (`heedful.model.layout.unpad`)."""
    return use_cpu_kernel(next(stack.parameters()), keys)


def short_attention(
    queries: Float[Tensor, "batch queries width"],
    keys: Float[Tensor, "_ keys width"],
    values: Float[Tensor, "_ keys width_v"],
    mask: Bool[Tensor, "_ _ _ _"] | None,
    heads: int,
    packings: Packings = (None, None),
) -> Float[Tensor, "batch queries width_v"]:
    """
    Compute the context of all heads, which are concatenated on the last axis.

    `mask`: True where the query may attend to the key; everywhere if None. `packings`: positions of
    the real queries and of the real keys; None for padded rows.
    """
    # kernels read the projection's output in place, and write its gradient in the same layout
    kv: Tensor | None = None
    if lie_side_by_side(queries, keys, values):
        qkv = join(queries, keys, values)
    else:
        qkv, kv = queries, join(keys, values)
    d_k = queries.size(2) // heads
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
    """
    Compute `short_attention` with functions of torch, on padded rows.

    `qkv`: queries; in self-attention, keys and values follow on the last axis. `kv`: keys, then
    values; None in self-attention.
    """
    return _ShortAttention.apply(qkv, kv, mask, heads, d_k, packings)


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
        # 1. padded rows: padding contains copies of a token, because no query attends to padding,
        # and its context is dropped at the end
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
        # 4. concatenate the heads: (batch, queries, heads * d_v), without padding if it was removed
        out = torch.empty(*qkv.shape[:2], heads * value.size(2), dtype=context.dtype)
        _write(out, context, heads)
        return out if query_packing is None else gather(out, query_packing)

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
        width, kv_width = heads * query.size(2), heads * (query.size(2) + value.size(2))
        d_kv: Tensor | None = None
        if ctx.together:
            d_qkv = gradient.new_empty(rows, queries, width + kv_width)
            d_key_value = d_qkv[..., width:]
        else:
            d_qkv = gradient.new_empty(rows, queries, width)
            d_kv = d_key_value = gradient.new_empty(rows, keys, kv_width)
        _write(d_qkv[..., :width], d_query, heads, 1.0 / math.sqrt(query.size(2)))
        _write(d_key_value[..., :width], d_key[:, :keys], heads)
        _write(d_key_value[..., width:], d_value[:, :keys], heads)
        if query_packing is not None:
            d_qkv = gather(d_qkv, query_packing)
        if d_kv is not None and key_packing is not None:
            d_kv = gather(d_kv, key_packing)
        return d_qkv, d_kv, None, None, None, None


def _softmax_gradient(gradient: Tensor, weights: Tensor) -> Tensor:
    """Compute the gradient of the scores from the gradient of their softmax."""
    differentiate = internal("torch.ops.aten._softmax_backward_data")
    if differentiate is None:
        shares = weights.float()
        parts = gradient.float() * shares
        return (parts - shares * parts.sum(-1, keepdim=True)).to(weights.dtype)
    return differentiate(gradient, weights, -1, weights.dtype)


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
    """Return the bias of the scores, minus infinity where attention is forbidden, or None."""
    if mask is None:
        if filled == keys:
            return None
        mask = torch.ones(1, 1, 1, keys, dtype=torch.bool)
    mask_bias = like.new_full((*mask.shape[:3], filled), float("-inf"))
    mask_bias[..., :keys].masked_fill_(mask, 0.0)
    return mask_bias


_ADDRESS, _SIZE, _NUMBER = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int


class _TokensStruct(ctypes.Structure):
    """The C struct ``Tokens``."""

    _fields_ = (("starts", _ADDRESS), ("places", _ADDRESS), ("apart", _NUMBER))


class _AttentionStruct(ctypes.Structure):
    """The C struct ``ShortAttention``."""

    _fields_ = (
        *((name, _ADDRESS) for name in ("query", "key", "value")),
        *(("queries", _TokensStruct), ("keys", _TokensStruct)),
        ("mask", _ADDRESS),
        *((name, _SIZE) for name in ("mask_row", "mask_head", "mask_query", "mask_key")),
        *((name, _NUMBER) for name in ("rows", "heads", "d_k", "d_v")),
        *((name, _NUMBER) for name in ("longest_queries", "longest_keys", "is_fp32", "threads")),
    )


def can_attend(
    qkv: Tensor,
    kv: Tensor | None,
    mask: Tensor | None,
    heads: int,
    d_k: int,
    packings: Packings = (None, None),
) -> bool:
    """Return whether there are compiled functions for these tensors."""
    tensors = [tensor for tensor in (qkv, kv) if tensor is not None]
    if native_products() is None or qkv.dtype not in FLOATS or not all(map(is_plain, tensors)):
        return False
    if mask is not None and not (is_plain(mask) and mask.dtype == torch.bool):
        return False
    width, offered = heads * d_k, qkv.size(2) if kv is None else kv.size(2)
    values = offered - (2 if kv is None else 1) * width
    if values <= 0 or values % heads or (kv is not None and qkv.size(2) != width):
        return False
    rows = set()
    for tensor, packing in zip(tensors, packings, strict=False):
        if packing is not None and tensor.shape[:2] != (1, len(packing.places)):
            return False
        rows.add(tensor.size(0) if packing is None else packing.rows)
    return len(rows) == 1 and (kv is None or kv.dtype == qkv.dtype)


def native_short_attention(
    qkv: Float[Tensor, "batch queries width"],
    kv: Float[Tensor, "_ keys other"] | None,
    mask: Bool[Tensor, "_ _ _ _"] | None,
    heads: int,
    d_k: int,
    packings: Packings = (None, None),
) -> Float[Tensor, "batch queries context"]:
    """Compute `plain_short_attention` with compiled functions; call only if `can_attend`."""
    qkv = qkv.contiguous()
    kv = None if kv is None else kv.contiguous()
    return _NativeShortAttention.apply(qkv, kv, mask, heads, d_k, packings)


class _NativeShortAttention(torch.autograd.Function):
    """Attention that keeps only its input for the backward pass."""

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
        ctx.save_for_backward(qkv, kv, mask)
        ctx.rest = heads, d_k, packings
        call = _NativeCall(qkv, kv, mask, heads, d_k, packings)
        context = qkv.new_empty(*qkv.shape[:2], heads * call.described.d_v)
        call.library.short_attention(call.address, call.memory.data_ptr(), context.data_ptr())
        return context

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        qkv, kv, mask = ctx.saved_tensors
        heads, d_k, packings = ctx.rest
        call, gradient = _NativeCall(qkv, kv, mask, heads, d_k, packings), gradient.contiguous()
        d_qkv, d_kv = torch.empty_like(qkv), None if kv is None else torch.empty_like(kv)
        call.library.short_attention_gradients(
            *(call.address, gradient.data_ptr(), call.memory.data_ptr()),
            *_addresses(d_qkv, d_kv, heads * d_k),
        )
        return d_qkv, d_kv, None, None, None, None


class _NativeCall:
    """Arguments of the C functions, with the tensors to which `described` points."""

    def __init__(
        self,
        qkv: Tensor,
        kv: Tensor | None,
        mask: Tensor | None,
        heads: int,
        d_k: int,
        packings: Packings,
    ) -> None:
        library = native_products()
        assert library is not None  # `can_attend`
        self.library, width = library, heads * d_k
        queries = _Rows.of(qkv, packings[0])
        keys = queries if kv is None else _Rows.of(kv, packings[1])
        offered = qkv.size(2) - width if kv is None else kv.size(2)
        rows, d_v = len(queries.starts) - 1, (offered - width) // heads
        if mask is not None:
            mask = mask.expand(rows, heads, queries.longest, keys.longest)
        threads = torch.get_num_threads()
        self.described = _AttentionStruct(
            *_addresses(qkv, kv, width),
            *(queries.described, keys.described),
            *((None, 0, 0, 0, 0) if mask is None else (mask.data_ptr(), *mask.stride())),
            *(rows, heads, d_k, d_v, queries.longest, keys.longest),
            *(int(qkv.dtype == torch.float32), threads),
        )
        self.address = ctypes.byref(self.described)
        per_thread = library.short_attention_memory(queries.longest, keys.longest, d_k, d_v)
        self.memory = torch.empty(per_thread * threads, dtype=torch.float32, device="cpu")
        self._kept = queries, keys, mask


class _Rows(NamedTuple):
    """Positions of the tokens of each row, packed or padded."""

    starts: Tensor
    places: Tensor
    longest: int
    apart: int

    @classmethod
    def of(cls, x: Tensor, packing: Packing | None) -> "_Rows":
        if packing is not None:
            return cls(packing.starts, packing.in_row, packing.time, x.size(2))
        rows, time, width = x.shape
        starts = torch.arange(rows + 1, device="cpu") * time
        return cls(starts, torch.arange(time, device="cpu").repeat(rows), time, width)

    @property
    def described(self) -> _TokensStruct:
        """The C struct."""
        return _TokensStruct(self.starts.data_ptr(), self.places.data_ptr(), self.apart)


def _addresses(qkv: Tensor, kv: Tensor | None, width: int) -> tuple[int, int, int]:
    """Return the addresses of the first query, key and value; `width`: width of the queries."""
    step, first = width * qkv.element_size(), qkv.data_ptr()
    key = first + step if kv is None else kv.data_ptr()
    return first, key, key + step


# If sentences times heads is at most this number, torch's fused kernel is faster than batched
# multiplications, because it starts one function instead of three. The number was chosen by hand.
_FEW_PRODUCTS = 16


def cached_attention(
    query: Float[Tensor, "batch heads queries d_k"],
    key: Float[Tensor, "batch heads keys d_k"],
    value: Float[Tensor, "batch heads keys d_v"],
    mask_bias: Float[Tensor, "batch heads queries keys"],
) -> Float[Tensor, "batch heads queries d_v"]:
    """
    Compute attention for a few queries with an additive mask.

    `mask_bias`: zero where the query may attend to the key, minus infinity elsewhere.

    The tensors of a step are small, so each pass over memory is significant. One matrix
    multiplication, which also adds the bias, computes the scores.
    """
    batch, heads, queries, _ = query.shape
    is_few = batch * heads <= _FEW_PRODUCTS
    if is_few or query.device.type != "cpu" or is_plain_torch():
        return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask_bias)
    scores = torch.baddbmm(
        mask_bias.flatten(0, 1),
        query.reshape(batch * heads, queries, -1),
        key.flatten(0, 1).transpose(1, 2),
        alpha=1.0 / math.sqrt(query.size(-1)),
    )  # (batch * heads, queries, keys)
    context = torch.softmax(scores, dim=-1) @ value.flatten(0, 1)  # (batch * heads, queries, d_v)
    return context.view(batch, heads, queries, -1)
