"""
Attention on a GPU over consecutive sentences without padding.

::

    starts   0        3     5              10
             x x x | x x | x x x x x            three sentences in one row of ten tokens

The starts of the sentences are read on the device, so shapes never change and no mask is needed.
Three functions compute the same results:

- `heedful.kernels.triton_kernels`: sentences of at most 512 tokens, if Triton is available;
- torch's `varlen_attn`: longer sentences, and heads of other widths;
- `plain_packed_attention`: a loop over the sentences, in all other cases.

The first two support only 16-bit numbers on a GPU.
"""

from importlib import import_module
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.kernels.torch_internals import is_plain_torch
from heedful.kernels.triton_launch import triton_kernels

EVERYTHING = (-1, -1)
"""The window of a query that sees all keys of its sentence."""
UP_TO_ITSELF = (-1, 0)
"""The window of a query that sees itself and earlier keys."""

# Maximum number of tokens of a sentence for tiles; one program computes one head of a sentence. On
# an H200, sentences of 200 tokens took as long as with torch's kernel; sentences of 20 to 30 tokens
# took an eighth of the time of torch's kernel.
_SHORT = 512
# Widths of heads for which there are tiles.
_WIDTHS = (16, 32, 64, 128)


class PackedRows(NamedTuple):
    """Starts of consecutive sentences in one row."""

    starts: Int[Tensor, " rows_and_one"]
    """Index of the first token of each sentence, and of the end; 32 bits, on the device."""
    longest: int
    """Maximum number of tokens in a sentence."""
    window: tuple[int, int] = EVERYTHING
    """Numbers of keys that a query sees before and after its position; -1 for all."""


# Functions of modules that are imported when they are first needed. Compiled code cannot import
# them, so `has_packed_kernel` is called once before compilation.
_loaded: dict[str, Any] = {}


def tiles_of(x: Tensor) -> Any:
    """Return Triton's kernels if available for the tensor's device and type, otherwise None."""
    return _loaded.get("tiles") if has_packed_kernel(x) else None


def has_packed_kernel(x: Tensor) -> bool:
    """Return whether there are kernels for the tensor's device and type, and load them."""
    is_known = x.device.type == "cuda" and x.dtype in (torch.bfloat16, torch.float16)
    is_known = is_known and not is_plain_torch()
    if is_known and not _loaded:
        _loaded["varlen"] = import_module("torch.nn.attention.varlen").varlen_attn
        _loaded["tiles"] = triton_kernels(x.device)
    return is_known


def packed_attention(
    queries: Float[Tensor, "1 tokens width"],
    keys: Float[Tensor, "1 keys width"],
    values: Float[Tensor, "1 keys width"],
    heads: int,
    query_rows: PackedRows,
    key_rows: PackedRows,
) -> Float[Tensor, "1 tokens width"]:
    """
    Compute the context of all heads, which are concatenated on the last axis.

    Queries attend, within their window, to the keys of the sentence with the same index.
    """
    # (tokens, heads, d)
    query, key, value = (part[0].unflatten(-1, (heads, -1)) for part in (queries, keys, values))
    longest = max(query_rows.longest, key_rows.longest)
    if not has_packed_kernel(query):
        context = plain_packed_attention(query, key, value, query_rows, key_rows)
    elif _loaded["tiles"] is not None and longest <= _SHORT and query.size(2) in _WIDTHS:
        starts = query_rows.starts, key_rows.starts
        context, _ = tiled_attention(query, key, value, *starts, longest, *query_rows.window)
    else:
        context = _loaded["varlen"](
            query,
            key,
            value,
            query_rows.starts,
            key_rows.starts,
            query_rows.longest,
            key_rows.longest,
            window_size=query_rows.window,
        )
    return context.flatten(1).unsqueeze(0)


@torch.library.custom_op("heedful::tiled_attention", mutates_args=())
def tiled_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_starts: Tensor,
    key_starts: Tensor,
    longest: int,
    before: int,
    after: int,
) -> tuple[Tensor, Tensor]:
    """Compute attention in tiles; torch's compiler leaves this operation unchanged."""
    context, log_sums = _loaded["tiles"].attention(
        query, key, value, query_starts, key_starts, longest, (before, after)
    )
    return context, log_sums


@tiled_attention.register_fake
def _(query: Tensor, key: Tensor, value: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    del key, value, rest
    sums = query.new_empty(query.size(1), query.size(0), dtype=torch.float32)
    return query.new_empty(query.shape), sums


@torch.library.custom_op("heedful::tiled_attention_gradients", mutates_args=())
def tiled_attention_gradients(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    context: Tensor,
    log_sums: Tensor,
    query_starts: Tensor,
    key_starts: Tensor,
    longest: int,
    before: int,
    after: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the gradients of queries, keys and values in tiles."""
    tensors = gradient, query, key, value, context, log_sums, query_starts, key_starts
    d_query, d_key, d_value = _loaded["tiles"].attention_gradients(
        *tensors, longest, (before, after)
    )
    return d_query, d_key, d_value


@tiled_attention_gradients.register_fake
def _(
    gradient: Tensor, query: Tensor, key: Tensor, value: Tensor, *rest: Any
) -> tuple[Tensor, Tensor, Tensor]:
    del gradient, rest
    d_query, d_key, d_value = (part.new_empty(part.shape) for part in (query, key, value))
    return d_query, d_key, d_value


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    """Save the tensors and sizes from which the gradients are computed."""
    query, key, value, query_starts, key_starts, *sizes = inputs
    ctx.save_for_backward(query, key, value, *output, query_starts, key_starts)
    ctx.sizes = sizes


def _differentiate(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    """Compute the gradients of all inputs."""
    gradients = tiled_attention_gradients(gradient, *ctx.saved_tensors, *ctx.sizes)
    return (*gradients, None, None, None, None, None)


tiled_attention.register_autograd(_differentiate, setup_context=_keep)


def _distances(queries: int, keys: int) -> Tensor:
    """Return the position of each key minus the position of each query."""
    return torch.arange(keys).unsqueeze(0) - torch.arange(queries).unsqueeze(1)


def plain_packed_attention(
    query: Float[Tensor, "tokens heads d_k"],
    key: Float[Tensor, "keys heads d_k"],
    value: Float[Tensor, "keys heads d_v"],
    query_rows: PackedRows,
    key_rows: PackedRows,
) -> Float[Tensor, "tokens heads d_v"]:
    """Compute attention sentence by sentence; a query without keys gets zeros."""
    contexts = [value.new_zeros(0, *value.shape[1:])]
    edges, key_edges = query_rows.starts.tolist(), key_rows.starts.tolist()
    before, after = query_rows.window
    # places of the room that no sentence takes are left out
    for number in query_rows.starts.diff().nonzero().flatten().tolist():
        # (heads, tokens, d)
        own = query[edges[number] : edges[number + 1]].transpose(0, 1)
        others = slice(key_edges[number], key_edges[number + 1])
        keys, values = (part[others].transpose(0, 1) for part in (key, value))
        if not keys.size(1):
            contexts.append(value.new_zeros(own.size(1), *value.shape[1:]))
            continue
        seen = None
        if max(before, after) >= 0:
            distance = _distances(own.size(1), keys.size(1)).to(query.device)
            seen = torch.ones_like(distance, dtype=torch.bool)
            if before >= 0:
                seen &= distance >= -before
            if after >= 0:
                seen &= distance <= after
        attend = nn.functional.scaled_dot_product_attention
        contexts.append(attend(own, keys, values, attn_mask=seen).transpose(0, 1))
    return torch.cat(contexts)
