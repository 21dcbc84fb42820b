"""Attention of a step of a search: a few queries of each sentence to keys and values in a cache."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

# Up to this many products of sentences and heads torch's fused kernel is faster than batched
# products: it starts one function, they start three. Where the two cross was chosen by hand.
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

    The tensors of a step are small and each pass over memory counts: the scores come from one
    product that starts from the bias.
    """
    batch, heads, queries, _ = query.shape
    if query.device.type != "cpu" or batch * heads <= _FEW_PRODUCTS:
        return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask_bias)
    scores = torch.baddbmm(
        mask_bias.flatten(0, 1),
        query.reshape(batch * heads, queries, -1),
        key.flatten(0, 1).transpose(1, 2),
        alpha=1.0 / math.sqrt(query.size(-1)),
    )  # (batch * heads, queries, keys)
    context = torch.softmax(scores, dim=-1) @ value.flatten(0, 1)  # (batch * heads, queries, d_v)
    return context.view(batch, heads, queries, -1)
