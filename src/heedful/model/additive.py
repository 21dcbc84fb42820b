"""
Attention that stores its scores: additive scores, and scores with a bias or distance terms.

``e_ij = v tanh(q_i + k_j)`` (Bahdanau et al. 2015), with one vector v per head. Storing all sums
q_i + k_j at once would take queries x keys x d_k numbers per head. The sums are therefore computed
for a few queries at a time, and recomputed in the backward pass; only the scores are stored.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from heedful.kernels.api import SHORT, Dropout
from heedful.model.layout import Layout, merge_heads, pad, split_heads
from heedful.model.relations import Places, Relation, distances_of_slots

Compare = Callable[[Tensor, Tensor], Tensor]
"""Maps queries and keys (batch, heads, time, d_k) to scores (batch, heads, queries, keys)."""


class Scoring(NamedTuple):
    """How an attention layer differs from scaled dot-product attention."""

    compare: Compare | None = None
    """Computes the scores; None for scaled dot products."""
    relation: Relation | None = None
    """Adds distance terms to the scores and contexts of scaled dot-product attention."""
    dropout: Dropout | None = None
    """Drops attention weights in training."""

    @property
    def is_explicit(self) -> bool:
        """Whether scores or weights must be stored; fused kernels store neither."""
        drops = self.dropout is not None and self.dropout.present_probability > 0
        return drops or self.compare is not None or self.relation is not None


PRODUCTS = Scoring()
"""Scaled dot-product attention without changes."""
# Maximum number of sums in memory at once. The limit was chosen by hand: 16 MB in fp32, which needs
# few kernel launches.
MOST_NUMBERS = 1 << 22


def additive_scores(
    query: Float[Tensor, "batch heads queries d_k"],
    key: Float[Tensor, "batch heads keys d_k"],
    energy: Float[Tensor, "heads d_k"],
) -> Float[Tensor, "batch heads queries keys"]:
    """Compute ``v tanh(q_i + k_j)`` for every query and key. `energy`: v of each head."""
    return _AdditiveScores.apply(query, key, energy.to(query.dtype))


def additive_attention(
    query: Float[Tensor, "batch heads queries d_k"],
    key: Float[Tensor, "batch heads keys d_k"],
    value: Float[Tensor, "batch heads keys d_v"],
    energy: Float[Tensor, "heads d_k"],
    mask: Bool[Tensor, "#batch #heads #queries keys"] | None = None,
) -> tuple[Float[Tensor, "batch heads queries d_v"], Float[Tensor, "batch heads queries keys"]]:
    """Compute contexts and weights. `mask`: true where the query may attend to the key."""
    return _attention_of(additive_scores(query, key, energy), value, mask)


def attend_by_scores(
    queries: Float[Tensor, "batch queries width"],
    keys: Float[Tensor, "other keys width"],
    values: Float[Tensor, "other keys width_v"],
    heads: int,
    layout: Layout,
    scoring: Scoring,
    need_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    """Compute the context of all heads from scores of any kind, in padded rows."""
    compare, relation, dropout = scoring
    packings = (layout.query_packing, layout.key_packing, layout.key_packing)
    query, key, value = (
        split_heads(pad(part, packing), heads)
        for part, packing in zip((queries, keys, values), packings, strict=True)
    )
    bias = None if layout.bias is None else layout.bias.to(query.dtype)
    weights: Tensor | None = None
    is_product = not (scoring.is_explicit or need_weights)
    if is_product and (query.device.type != "cpu" or key.size(2) > SHORT):
        context = scaled_dot_product_attention(query, key, value, attn_mask=bias)
    else:
        distance = Places.in_order(key.size(2), key.device).distances
        scores = (
            _products(query, key, relation, distance) if compare is None else compare(query, key)
        )
        scores, mask = (scores, layout.mask) if bias is None else (scores + bias, None)
        context, weights = _attention_of(scores, value, mask, dropout)
        if relation is not None:
            context = context + relation.context(weights, distance)
    if layout.weights is not None and weights is not None:
        layout.weights.append(weights)
    merged = merge_heads(context)
    return merged if layout.query_packing is None else layout.query_packing.pack(merged), weights


def attend_cached_by_scores(
    query: Float[Tensor, "batch heads queries d_k"],
    key: Float[Tensor, "batch heads keys d_k"],
    value: Float[Tensor, "batch heads keys d_v"],
    mask_bias: Float[Tensor, "batch heads queries keys"],
    scoring: Scoring,
) -> Float[Tensor, "batch heads queries d_v"]:
    """Compute the context of a search's newest tokens; the keys may have a lower precision."""
    compare, relation, _ = scoring
    short, distance = query.to(key.dtype), distances_of_slots(mask_bias[:, 0])
    if isinstance(compare, nn.Module):  # its weights have the type of the queries
        scores = compare(query, key.to(query.dtype)).to(key.dtype)
    elif compare is not None:
        scores = compare(short, key)
    else:
        scores = _products(short, key, relation, distance)
    context, weights = _attention_of(scores + mask_bias, value, None)
    return context if relation is None else context + relation.context(weights, distance)


def _products(query: Tensor, key: Tensor, relation: Relation | None, distance: Tensor) -> Tensor:
    """Compute q k / sqrt(d_k), including the terms that a relation adds to q k."""
    query = query * query.size(-1) ** -0.5
    products = query @ key.transpose(-2, -1)
    return products if relation is None else products + relation.scores(query, distance)


def _attention_of(
    scores: Tensor, value: Tensor, mask: Tensor | None, dropout: Dropout | None = None
) -> tuple[Tensor, Tensor]:
    """Convert scores to weights, drop some weights in training, and average the values."""
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    weights = weights if dropout is None else dropout(weights)
    return weights @ value, weights


class _AdditiveScores(torch.autograd.Function):
    """Computes additive scores for a few queries at a time; recomputes the sums in `backward`."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, energy: Tensor) -> Tensor:
        ctx.save_for_backward(query, key, energy)
        scores = query.new_empty(*query.shape[:3], key.size(2))
        for part in _parts(query, key):
            inner = _inner(query[:, :, part], key)  # (batch, heads, some, keys, d_k)
            scores[:, :, part] = (inner.flatten(2, 3) @ energy.unsqueeze(-1)).view_as(
                scores[:, :, part]
            )
            del inner  # free memory before the next part
        return scores

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, energy = ctx.saved_tensors
        d_query = torch.empty_like(query)
        # sums over all parts, always in fp32
        d_key = torch.zeros_like(key, dtype=torch.float32)
        d_energy = torch.zeros_like(energy, dtype=torch.float32)
        for part in _parts(query, key):
            inner = _inner(query[:, :, part], key)
            d_scores = gradient[:, :, part].unsqueeze(-1)  # (batch, heads, some, keys, 1)
            d_energy += (inner * d_scores).sum(dim=(0, 2, 3))
            d_sum = inner.square_().neg_().add_(1.0).mul_(d_scores)  # tanh' = 1 - tanh^2
            d_sum.mul_(energy[:, None, None])
            d_query[:, :, part] = d_sum.sum(dim=3)
            d_key += d_sum.sum(dim=2)
        return d_query, d_key.to(key.dtype), d_energy.to(energy.dtype)


def _inner(query: Tensor, key: Tensor) -> Tensor:
    """Compute tanh(q_i + k_j): (batch, heads, queries, keys, d_k)."""
    return (query.unsqueeze(3) + key.unsqueeze(2)).tanh_()


def _parts(query: Tensor, key: Tensor) -> Iterator[slice]:
    """Split the queries into blocks of at most `MOST_NUMBERS` sums, but at least one query."""
    queries = query.size(2)
    sums = key.numel() * queries  # of all heads
    step = max(1, queries * MOST_NUMBERS // max(sums, 1))
    for first in range(0, queries, step):
        yield slice(first, first + step)
