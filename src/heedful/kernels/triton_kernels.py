"""
Kernels in Triton, imported only with Triton and a GPU; each has a plain equivalent in torch.

::

    loss_rows              loss and gradient of a row of logits      kernels/masked_loss.py
    attention              sentences of a few dozen tokens           kernels/varlen.py
    attention_gradients
    add_norm               dropout, sum and layer norm               kernels/add_norm.py
    add_norm_gradients

Each program of the loss kernel reads one row twice. The first pass computes the largest score, the
normalizer and the sum of the scores, separately at each position of a block. The second pass
overwrites the scores with the gradient.

Each program of an attention kernel computes one head of one sentence. Torch's kernel computes tiles
of 128 by 128 positions, but a sentence of 25 tokens fills only 4% of a tile. The tiles here are
smaller. No two programs add to the same number, so results are the same in every run.
"""

# Functions for Triton are not typed, and their loops are easiest to read with short names.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,import-not-found"

from collections.abc import Iterator

import torch
import triton
import triton.language as tl
from torch import Tensor

# Number of classes that the loss loads at once, and its number of warps.
_CLASSES, _LOSS_WARPS = 2048, 16
# Positions on each side of a tile, and warps of the forward and of the backward pass, as measured
# on an H200. Sentences that fit into one small tile have their own programs.
_TILES = ((32, 1, 2), (64, 4, 4))
# Number of values that a program of the norm processes at once, its warps, and the programs of its
# backward pass, which process all rows: four on each multiprocessor of an H200.
_NORM_NUMBERS, _NORM_WARPS, _NORM_PROGRAMS = 1024, 4, 528
_LEVELS = 1 << 16  # of the random bits


@triton.jit
def _scores_at(first, places, classes: tl.constexpr):
    """Load scores; beyond the last class, return a number far below all scores."""
    inside = places < classes
    return tl.load(first + places, mask=inside, other=-1e30).to(tl.float32)


@triton.jit
def _loss_kernel(
    scores,
    targets,
    counts,
    losses,
    nlls,
    stride,
    off,
    on,
    classes: tl.constexpr,
    block: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    first = scores + row * stride
    target = tl.load(targets + row)
    does_count = tl.load(counts + row) != 0
    places = tl.arange(0, block)
    # 1. each lane: largest score, sum of exponentials below it, sum of the scores
    largest = tl.full((block,), -1e30, tl.float32)
    normalizer = tl.zeros((block,), tl.float32)
    total = tl.zeros((block,), tl.float32)
    for start in range(0, classes, 4 * block):
        at = start + places
        a, b = _scores_at(first, at, classes), _scores_at(first, at + block, classes)
        c = _scores_at(first, at + 2 * block, classes)
        d = _scores_at(first, at + 3 * block, classes)
        higher = tl.maximum(tl.maximum(a, b), tl.maximum(c, d))
        higher = tl.maximum(largest, higher)
        normalizer = normalizer * tl.exp(largest - higher) + tl.exp(a - higher)
        normalizer += tl.exp(b - higher) + tl.exp(c - higher) + tl.exp(d - higher)
        total += tl.where(at < classes, a, 0.0) + tl.where(at + block < classes, b, 0.0)
        total += tl.where(at + 2 * block < classes, c, 0.0)
        total += tl.where(at + 3 * block < classes, d, 0.0)
        largest = higher
    # 2. all lanes; the sum of a lane without any class is multiplied by zero
    highest = tl.max(largest, axis=0)
    log_z = highest + tl.log(tl.sum(normalizer * tl.exp(largest - highest), axis=0))
    right = tl.load(first + target).to(tl.float32) - log_z
    loss = -(on - off) * right - off * (tl.sum(total, axis=0) - classes * log_z)
    tl.store(losses + row, tl.where(does_count, loss, 0.0))
    tl.store(nlls + row, tl.where(does_count, -right, 0.0))
    # 3. softmax minus the smoothed target
    for start in range(0, classes, block):
        inside = start + places < classes
        x = tl.load(first + start + places, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.exp(x - log_z) - off
        gradient = tl.where(start + places == target, gradient + off - on, gradient)
        gradient = tl.where(does_count, gradient, 0.0)
        tl.store(first + start + places, gradient.to(scores.dtype.element_ty), mask=inside)


def loss_rows(
    scores: Tensor, targets: Tensor, counts: Tensor, off: float, on: float
) -> tuple[Tensor, Tensor]:
    """Compute `heedful.kernels.masked_loss.plain_rows`."""
    rows, classes = scores.shape
    losses, nlls = torch.empty(2, rows, dtype=torch.float32, device=scores.device)
    _loss_kernel[(rows,)](
        *(scores, targets, counts, losses, nlls, scores.stride(0), off, on),
        classes=classes,
        block=min(_CLASSES, triton.next_power_of_2(-(-classes // 4))),
        num_warps=_LOSS_WARPS,
    )
    return losses, nlls


@triton.jit
def _is_seen(q_at, k_at, q_count, k_count, before: tl.constexpr, after: tl.constexpr):
    """Compute which keys of a tile the queries see; `q_at, k_at`: positions in their sentences."""
    seen = (q_at[:, None] < q_count) & (k_at[None, :] < k_count)
    if before >= 0:
        seen = seen & (k_at[None, :] >= q_at[:, None] - before)
    if after >= 0:
        seen = seen & (k_at[None, :] <= q_at[:, None] + after)
    return seen


@triton.jit
def _tile_of(x, first, at, count, stride, head, width: tl.constexpr):
    """Load the rows of some positions of a head; zeros beyond the sentence."""
    columns = tl.arange(0, width)
    rows = (first + at).to(tl.int64) * stride
    places = x + rows[:, None] + head * width + columns[None, :]
    return tl.load(places, mask=at[:, None] < count, other=0.0)


@triton.jit
def _store_tile(x, values, first, at, count, stride, head, width: tl.constexpr):
    """Store the rows of some positions of a head."""
    columns = tl.arange(0, width)
    rows = (first + at).to(tl.int64) * stride
    places = x + rows[:, None] + head * width + columns[None, :]
    tl.store(places, values.to(x.dtype.element_ty), mask=at[:, None] < count)


@triton.jit
def _attention_kernel(
    query,
    key,
    value,
    context,
    log_sums,
    query_starts,
    key_starts,
    query_stride,
    key_stride,
    value_stride,
    context_stride,
    tokens,
    scale,
    before: tl.constexpr,
    after: tl.constexpr,
    width: tl.constexpr,
    least: tl.constexpr,
    most: tl.constexpr,
    tile: tl.constexpr,
):
    sentence, head = tl.program_id(0), tl.program_id(1)
    q_first = tl.load(query_starts + sentence)
    q_count = tl.load(query_starts + sentence + 1) - q_first
    k_first = tl.load(key_starts + sentence)
    k_count = tl.load(key_starts + sentence + 1) - k_first
    longer = tl.maximum(q_count, k_count)
    if (longer <= least) | (longer > most):
        return
    for q_start in range(0, q_count, tile):
        q_at = q_start + tl.arange(0, tile)
        q = _tile_of(query, q_first, q_at, q_count, query_stride, head, width)
        largest = tl.full((tile,), -1e30, tl.float32)
        normalizer = tl.zeros((tile,), tl.float32)
        total = tl.zeros((tile, width), tl.float32)
        for k_start in range(0, k_count, tile):
            k_at = k_start + tl.arange(0, tile)
            k = _tile_of(key, k_first, k_at, k_count, key_stride, head, width)
            v = _tile_of(value, k_first, k_at, k_count, value_stride, head, width)
            seen = _is_seen(q_at, k_at, q_count, k_count, before, after)
            scores = tl.where(seen, tl.dot(q, tl.trans(k)) * scale, -1e30)
            higher = tl.maximum(largest, tl.max(scores, axis=1))
            weights = tl.where(seen, tl.exp(scores - higher[:, None]), 0.0)
            shrunk = tl.exp(largest - higher)
            normalizer = normalizer * shrunk + tl.sum(weights, axis=1)
            total = total * shrunk[:, None] + tl.dot(weights.to(v.dtype), v)
            largest = higher
        is_empty = normalizer == 0.0  # no keys
        normalizer = tl.where(is_empty, 1.0, normalizer)
        out = total / normalizer[:, None]
        _store_tile(context, out, q_first, q_at, q_count, context_stride, head, width)
        places = log_sums + head * tokens + q_first + q_at
        tl.store(places, largest + tl.log(normalizer), mask=q_at < q_count)


@triton.jit
def _tile_gradients(q, k, v, d_out, log_sum, delta, seen, scale):
    """Return the weights of a tile, and the gradient of its scores."""
    scores = tl.dot(q, tl.trans(k)) * scale
    weights = tl.where(seen, tl.exp(scores - log_sum[:, None]), 0.0)
    d_weights = tl.dot(d_out, tl.trans(v))
    d_scores = weights * (d_weights - delta[:, None]) * scale
    return weights.to(q.dtype), d_scores.to(q.dtype)


@triton.jit
def _gradients_kernel(
    query,
    key,
    value,
    context,
    gradient,
    log_sums,
    d_query,
    d_key,
    d_value,
    query_starts,
    key_starts,
    query_stride,
    key_stride,
    value_stride,
    context_stride,
    d_query_stride,
    d_key_stride,
    d_value_stride,
    tokens,
    scale,
    before: tl.constexpr,
    after: tl.constexpr,
    width: tl.constexpr,
    least: tl.constexpr,
    most: tl.constexpr,
    tile: tl.constexpr,
):
    sentence, head = tl.program_id(0), tl.program_id(1)
    q_first = tl.load(query_starts + sentence)
    q_count = tl.load(query_starts + sentence + 1) - q_first
    k_first = tl.load(key_starts + sentence)
    k_count = tl.load(key_starts + sentence + 1) - k_first
    longer = tl.maximum(q_count, k_count)
    if (longer <= least) | (longer > most):
        return
    sums = log_sums + head * tokens + q_first
    # 1. gradients of keys and values, and of queries if one tile contains all keys
    for k_start in range(0, k_count, tile):
        k_at = k_start + tl.arange(0, tile)
        k = _tile_of(key, k_first, k_at, k_count, key_stride, head, width)
        v = _tile_of(value, k_first, k_at, k_count, value_stride, head, width)
        dk = tl.zeros((tile, width), tl.float32)
        dv = tl.zeros((tile, width), tl.float32)
        for q_start in range(0, q_count, tile):
            q_at = q_start + tl.arange(0, tile)
            q = _tile_of(query, q_first, q_at, q_count, query_stride, head, width)
            out = _tile_of(context, q_first, q_at, q_count, context_stride, head, width)
            d_out = _tile_of(gradient, q_first, q_at, q_count, context_stride, head, width)
            log_sum = tl.load(sums + q_at, mask=q_at < q_count, other=0.0)
            delta = tl.sum(out.to(tl.float32) * d_out.to(tl.float32), axis=1)
            seen = _is_seen(q_at, k_at, q_count, k_count, before, after)
            weights, d_scores = _tile_gradients(q, k, v, d_out, log_sum, delta, seen, scale)
            dv += tl.dot(tl.trans(weights), d_out)
            dk += tl.dot(tl.trans(d_scores), q)
            if k_count <= tile:
                dq = tl.dot(d_scores, k)
                _store_tile(d_query, dq, q_first, q_at, q_count, d_query_stride, head, width)
        _store_tile(d_key, dk, k_first, k_at, k_count, d_key_stride, head, width)
        _store_tile(d_value, dv, k_first, k_at, k_count, d_value_stride, head, width)
    # 2. gradients of queries with more keys, and of queries without keys
    if (k_count > tile) | (k_count == 0):
        for q_start in range(0, q_count, tile):
            q_at = q_start + tl.arange(0, tile)
            q = _tile_of(query, q_first, q_at, q_count, query_stride, head, width)
            out = _tile_of(context, q_first, q_at, q_count, context_stride, head, width)
            d_out = _tile_of(gradient, q_first, q_at, q_count, context_stride, head, width)
            log_sum = tl.load(sums + q_at, mask=q_at < q_count, other=0.0)
            delta = tl.sum(out.to(tl.float32) * d_out.to(tl.float32), axis=1)
            dq = tl.zeros((tile, width), tl.float32)
            for k_start in range(0, k_count, tile):
                k_at = k_start + tl.arange(0, tile)
                k = _tile_of(key, k_first, k_at, k_count, key_stride, head, width)
                v = _tile_of(value, k_first, k_at, k_count, value_stride, head, width)
                seen = _is_seen(q_at, k_at, q_count, k_count, before, after)
                _, d_scores = _tile_gradients(q, k, v, d_out, log_sum, delta, seen, scale)
                dq += tl.dot(d_scores, k)
            _store_tile(d_query, dq, q_first, q_at, q_count, d_query_stride, head, width)


def _launches(longest: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield each launch's sentence lengths (above `least`, at most `most`), tile size and warps."""
    least = 0
    for number, (tile, forwards, backwards) in enumerate(_TILES):
        is_last = longest <= tile or number + 1 == len(_TILES)
        yield least, longest if is_last else tile, tile, forwards, backwards
        if is_last:
            return
        least = tile


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_starts: Tensor,
    key_starts: Tensor,
    longest: int,
    window: tuple[int, int],
) -> tuple[Tensor, Tensor]:
    """
    Compute `heedful.kernels.varlen.plain_packed_attention`, and the logarithms of the softmax sums.

    `query, key, value`: shape (tokens, heads, d), where d is a power of two of at least 16. The
    heads of each token are contiguous.
    """
    tokens, heads, width = query.shape
    context = torch.empty(tokens, heads, width, dtype=query.dtype, device=query.device)
    log_sums = torch.empty(heads, tokens, dtype=torch.float32, device=query.device)
    for least, most, tile, warps, _ in _launches(longest):
        _attention_kernel[(len(query_starts) - 1, heads)](
            *(query, key, value, context, log_sums, query_starts, key_starts),
            *(part.stride(0) for part in (query, key, value, context)),
            *(tokens, width**-0.5),
            *(*window, width, least, most, tile),
            num_warps=warps,
            num_stages=1,
        )
    return context, log_sums


def attention_gradients(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    context: Tensor,
    log_sums: Tensor,
    query_starts: Tensor,
    key_starts: Tensor,
    longest: int,
    window: tuple[int, int],
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of queries, keys and values."""
    tokens, heads, width = query.shape
    gradient = gradient.contiguous()
    d_query, d_key, d_value = grads = [part.new_empty(part.shape) for part in (query, key, value)]
    for least, most, tile, _, warps in _launches(longest):
        _gradients_kernel[(len(query_starts) - 1, heads)](
            *(query, key, value, context, gradient, log_sums, *grads, query_starts, key_starts),
            *(part.stride(0) for part in (query, key, value, context, *grads)),
            *(tokens, width**-0.5),
            *(*window, width, least, most, tile),
            num_warps=warps,
            num_stages=1,
        )
    return d_query, d_key, d_value


@triton.jit
def _bits_at(at, keys):
    """Compute the bits of `heedful.kernels.dropout.hashed_bits` for some elements."""
    x = at ^ tl.load(keys)
    x = (x ^ ((x >> 16) & 0xFFFF)) * 0x7FEB352D + tl.load(keys + 1)
    x = (x ^ ((x >> 15) & 0x1FFFF)) * -2073254261
    return (x >> 16) & 0xFFFF


@triton.jit
def _add_norm_kernel(
    x,
    y,
    weight,
    bias,
    keys,
    out,
    totals,
    means,
    scales,
    count,
    threshold,
    factor,
    epsilon,
    width: tl.constexpr,
    columns: tl.constexpr,
    rows: tl.constexpr,
):
    row, column = tl.program_id(0) * rows + tl.arange(0, rows), tl.arange(0, columns)
    is_real = (row[:, None] < count) & (column[None, :] < width)
    at = row[:, None] * width + column[None, :]
    added = tl.load(y + at, mask=is_real, other=0.0).to(tl.float32)
    added = tl.where(_bits_at(at, keys) >= threshold, added * factor, 0.0)
    total = tl.load(x + at, mask=is_real, other=0.0).to(tl.float32) + added
    # round the sums to the values that the backward pass will read
    total = total.to(out.dtype.element_ty)
    tl.store(totals + at, total, mask=is_real)
    total = total.to(tl.float32)
    mean = tl.sum(total, axis=1) / width
    centered = tl.where(is_real, total - mean[:, None], 0.0)
    scale = tl.rsqrt(tl.sum(centered * centered, axis=1) / width + epsilon)
    w = tl.load(weight + column, mask=column < width, other=0.0).to(tl.float32)
    b = tl.load(bias + column, mask=column < width, other=0.0).to(tl.float32)
    result = centered * scale[:, None] * w[None, :] + b[None, :]
    tl.store(out + at, result.to(out.dtype.element_ty), mask=is_real)
    tl.store(means + row, mean, mask=row < count)
    tl.store(scales + row, scale, mask=row < count)


@triton.jit
def _add_norm_gradients_kernel(
    gradient,
    totals,
    means,
    scales,
    weight,
    keys,
    d_x,
    d_y,
    sums,
    count,
    threshold,
    factor,
    width: tl.constexpr,
    columns: tl.constexpr,
    rows: tl.constexpr,
):
    column = tl.arange(0, columns)
    w = tl.load(weight + column, mask=column < width, other=0.0).to(tl.float32)[None, :]
    d_weight = tl.zeros((rows, columns), tl.float32)
    d_bias = tl.zeros((rows, columns), tl.float32)
    for first in range(tl.program_id(0) * rows, count, tl.num_programs(0) * rows):
        row = first + tl.arange(0, rows)
        is_real = (row[:, None] < count) & (column[None, :] < width)
        at = row[:, None] * width + column[None, :]
        d_out = tl.load(gradient + at, mask=is_real, other=0.0).to(tl.float32)
        mean = tl.load(means + row, mask=row < count, other=0.0)[:, None]
        scale = tl.load(scales + row, mask=row < count, other=0.0)[:, None]
        total = tl.load(totals + at, mask=is_real, other=0.0).to(tl.float32)
        normal = tl.where(is_real, (total - mean) * scale, 0.0)
        d_weight += d_out * normal
        d_bias += d_out
        d_normal = d_out * w
        along = tl.sum(d_normal * normal, axis=1)[:, None] / width
        d_total = scale * (d_normal - tl.sum(d_normal, axis=1)[:, None] / width - normal * along)
        tl.store(d_x + at, d_total.to(d_x.dtype.element_ty), mask=is_real)
        added = tl.where(_bits_at(at, keys) >= threshold, d_total * factor, 0.0)
        tl.store(d_y + at, added.to(d_y.dtype.element_ty), mask=is_real)
    place = sums + tl.program_id(0) * 2 * width + column
    tl.store(place, tl.sum(d_weight, axis=0), mask=column < width)
    tl.store(place + width, tl.sum(d_bias, axis=0), mask=column < width)


def _rows_of(width: int) -> int:
    """Return the number of rows that a program processes at once."""
    return max(1, _NORM_NUMBERS // triton.next_power_of_2(width))


def add_norm(
    x: Tensor,
    y: Tensor,
    weight: Tensor,
    bias: Tensor,
    keys: Tensor,
    threshold: int,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `heedful.kernels.add_norm.add_norm`."""
    count, width = x.shape
    x, y = x.contiguous(), y.contiguous()
    out, totals = torch.empty_like(x), torch.empty_like(x)
    moments = torch.empty(2, count, dtype=torch.float32, device=x.device)
    rows = _rows_of(width)
    _add_norm_kernel[(triton.cdiv(count, rows),)](
        *(x, y, weight, bias, keys, out, totals, moments[0], moments[1]),
        *(count, threshold, _LEVELS / (_LEVELS - threshold), epsilon),
        *(width, triton.next_power_of_2(width), rows),
        num_warps=_NORM_WARPS,
    )
    return out, totals, moments


def add_norm_gradients(
    gradient: Tensor, totals: Tensor, moments: Tensor, weight: Tensor, keys: Tensor, threshold: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Compute `heedful.kernels.add_norm.add_norm_gradients`."""
    count, width = gradient.shape
    gradient = gradient.contiguous()
    d_x, d_y = torch.empty_like(gradient), torch.empty_like(gradient)
    rows, programs = _rows_of(width), _NORM_PROGRAMS
    # weight, then bias, in a layout in which one multiplication by ones sums both over programs
    sums = torch.empty(programs, 2, width, dtype=torch.float32, device=gradient.device)
    _add_norm_gradients_kernel[(programs,)](
        *(gradient, totals, moments[0], moments[1], weight, keys, d_x, d_y, sums),
        *(count, threshold, _LEVELS / (_LEVELS - threshold)),
        *(width, triton.next_power_of_2(width), rows),
        num_warps=_NORM_WARPS,
    )
    total = (sums.new_ones(1, programs) @ sums.flatten(1)).to(weight.dtype)
    return d_x, d_y, total[0, :width].clone(), total[0, width:].clone()
