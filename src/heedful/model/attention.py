"""
Attention and its masks: section 3.2 of the paper.

`scaled_dot_product_attention` is equation 1 as it is printed. `fused_attention` computes the same
with torch's fused kernels, which never write the weights to memory; the tests hold the two equal.
`MultiHeadAttention` runs several of them side by side (section 3.2.2). A mask is always called
`mask` and is true where a query may attend to a key.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.arguments import check_counts, checked
from heedful.errors import ArgumentError, SettingError
from heedful.model.cpu.attention import SHORT, Packings, short_attention, use_cpu_kernel
from heedful.model.cpu.linear import Linear, linear
from heedful.model.inputs import check_mask, check_states


def padding_mask(ids: Int[Tensor, "batch time"], padding: int) -> Bool[Tensor, "batch 1 1 time"]:
    """
    Build a mask that hides padding from every query.

    Parameters
    ----------
    ids : Tensor of int, shape (batch, time)
        Token ids.
    padding : int
        The padding id.

    Returns
    -------
    Tensor of bool, shape (batch, 1, 1, time)
        True at real tokens.

    Notes
    -----
    A row needs at least one real token: a softmax over nothing is NaN.
    """
    return (ids != padding)[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Bool[Tensor, "1 1 time time"]:
    """
    Build a mask that lets each position attend to itself and earlier positions.

    Parameters
    ----------
    length : int
        Number of positions.
    device : torch.device, optional
        Device of the mask.

    Returns
    -------
    Tensor of bool, shape (1, 1, length, length)
        True on and below the diagonal.

    Notes
    -----
    Section 3.2.3: no information flows leftward in the decoder. Padding stands at the end of a row,
    so real positions never attend to it and no further mask is needed.
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]


def scaled_dot_product_attention(
    query: Float[Tensor, "batch heads queries d_k"],
    key: Float[Tensor, "batch heads keys d_k"],
    value: Float[Tensor, "batch heads keys d_v"],
    mask: Bool[Tensor, "#batch #heads #queries keys"] | None = None,
) -> tuple[Float[Tensor, "batch heads queries d_v"], Float[Tensor, "batch heads queries keys"]]:
    """
    Compute equation 1: the values, weighted by how well each query matches each key.

    Equation 1 of the paper, ``softmax(Q K^T / sqrt(d_k)) V``.

    Parameters
    ----------
    query : Tensor of float, shape (batch, heads, queries, d_k)
        One row per query position.
    key : Tensor of float, shape (batch, heads, keys, d_k)
        One row per key position.
    value : Tensor of float, shape (batch, heads, keys, d_v)
        One row per key position, in the order of `key`.
    mask : Tensor of bool, shape (batch, 1 or heads, 1 or queries, keys), optional
        True where the query may attend to the key; everywhere if None.

    Returns
    -------
    context : Tensor of float, shape (batch, heads, queries, d_v)
        Weighted sum of the values.
    weights : Tensor of float, shape (batch, heads, queries, keys)
        The attention weights; every row sums to one.

    Notes
    -----
    Section 3.2.1: dividing by sqrt(d_k) keeps the softmax out of its flat regions. A query that may
    attend to nothing has no weights: its row is NaN.

    Examples
    --------
    >>> x = torch.zeros(1, 1, 2, 4)
    >>> all_open = torch.ones(1, 1, 1, 2, dtype=torch.bool)
    >>> _, weights = scaled_dot_product_attention(x, x, x, all_open)
    >>> weights[0, 0].tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    for name, x in (("query", query), ("key", key), ("value", value)):
        if not isinstance(x, Tensor):
            raise ArgumentError(
                f"`{name}` of scaled_dot_product_attention must be a tensor of floats of shape "
                f"(batch, heads, time, width), but a {type(x).__name__} came."
            )
    scores = (query * (1.0 / math.sqrt(query.size(-1)))) @ key.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


def fused_attention(
    query: Float[Tensor, "batch heads queries d_k"],
    key: Float[Tensor, "batch heads keys d_k"],
    value: Float[Tensor, "batch heads keys d_v"],
    mask: Bool[Tensor, "#batch #heads #queries keys"] | None = None,
) -> Float[Tensor, "batch heads queries d_v"]:
    """
    Compute the context of `scaled_dot_product_attention` without storing the weights.

    Parameters
    ----------
    query : Tensor of float, shape (batch, heads, queries, d_k)
        One row per query position.
    key : Tensor of float, shape (batch, heads, keys, d_k)
        One row per key position.
    value : Tensor of float, shape (batch, heads, keys, d_v)
        One row per key position, in the order of `key`.
    mask : Tensor of bool, shape (batch, 1 or heads, 1 or queries, keys), optional
        True where the query may attend to the key; everywhere if None.

    Returns
    -------
    Tensor of float, shape (batch, heads, queries, d_v)
        Weighted sum of the values.

    Notes
    -----
    Memory grows with the number of keys, not with queries x keys.
    """
    return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)


def biased_attention(
    query: Float[Tensor, "batch heads queries d_k"],
    key: Float[Tensor, "batch heads keys d_k"],
    value: Float[Tensor, "batch heads keys d_v"],
    mask_bias: Float[Tensor, "batch heads queries keys"],
) -> Float[Tensor, "batch heads queries d_v"]:
    """
    Compute attention for a few queries with an additive mask.

    Parameters
    ----------
    query : Tensor of float, shape (batch, heads, queries, d_k)
        One row per query position.
    key : Tensor of float, shape (batch, heads, keys, d_k)
        One row per key position.
    value : Tensor of float, shape (batch, heads, keys, d_v)
        One row per key position, in the order of `key`.
    mask_bias : Tensor of float, shape (batch, heads, queries, keys)
        Zero where the query may attend to the key, minus infinity elsewhere.

    Returns
    -------
    Tensor of float, shape (batch, heads, queries, d_v)
        Weighted sum of the values.

    Notes
    -----
    For the steps of a search, where tensors are small and each pass over memory counts: the scores
    come from one product that starts from the bias.
    """
    batch, heads, queries, _ = query.shape
    if query.device.type != "cpu" or batch * heads <= _FEW_PRODUCTS:
        return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask_bias)
    scores = torch.baddbmm(
        mask_bias.flatten(0, 1),
        query.reshape(batch * heads, queries, -1),
        key.flatten(0, 1).transpose(1, 2),
        alpha=1.0 / math.sqrt(query.size(-1)),
    )
    context = torch.softmax(scores, dim=-1) @ value.flatten(0, 1)
    return context.view(batch, heads, queries, -1)


# So few products in a batch are quicker within one fused kernel than as batched products.
_FEW_PRODUCTS = 16


class KeyValue(NamedTuple):
    """
    Keys and values of a sequence, split into heads.

    Notes
    -----
    Computed once per token and read at every later step of a search.
    """

    keys: Float[Tensor, "batch heads keys d_k"]
    """Projected keys."""
    values: Float[Tensor, "batch heads keys d_v"]
    """Projected values."""

    def select(self, rows: Tensor) -> "KeyValue":
        """
        Select rows of the batch, in any order and number.

        Parameters
        ----------
        rows : Tensor of int, shape (rows,)
            Index of the old row that each new row continues.

        Returns
        -------
        KeyValue
            The chosen rows.

        Notes
        -----
        Finished sentences leave the batch of a search this way.
        """
        return KeyValue(self.keys.index_select(0, rows), self.values.index_select(0, rows))


class MultiHeadAttention(nn.Module):
    """
    Multi-head attention (section 3.2.2).

    Parameters
    ----------
    d_model : int
        Width of inputs and output.
    heads : int
        Number of attention functions in parallel.
    d_k : int, optional
        Width of a head's queries and keys; d_model / heads if None.
    d_v : int, optional
        Width of a head's values; d_model / heads if None.
    bias : bool, default True
        Whether the projections add a bias.

    Notes
    -----
    The projections W^Q, W^K, W^V of all heads are one matrix, so that self-attention is one
    product; `out_proj` is the paper's W^O. Weights are returned on request and never kept on the
    module.

    Examples
    --------
    >>> attention = MultiHeadAttention(d_model=512, heads=8)
    >>> x = torch.randn(2, 5, 512)
    >>> context, _ = attention(x, x)
    >>> context.shape
    torch.Size([2, 5, 512])
    """

    @checked
    def __init__(
        self,
        d_model: int,
        heads: int,
        d_k: int | None = None,
        d_v: int | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        check_counts(d_model=d_model, heads=heads, d_k=d_k, d_v=d_v)
        if (d_k is None or d_v is None) and d_model % heads:
            raise SettingError(
                f"`heads` must divide d_model={d_model}, but {heads} does not; choose another "
                "number of heads, or give d_k and d_v."
            )
        self.d_model, self.heads = d_model, heads
        self.d_k = d_k if d_k is not None else d_model // heads
        self.d_v = d_v if d_v is not None else d_model // heads
        self.widths = (heads * self.d_k, heads * self.d_k, heads * self.d_v)
        self.qkv_proj = Linear(d_model, sum(self.widths), bias=bias)
        self.out_proj = Linear(heads * self.d_v, d_model, bias=bias)

    def forward(
        self,
        queries_from: Float[Tensor, "batch queries d_model"],
        keys_from: Float[Tensor, "other keys d_model"],
        mask: Bool[Tensor, "_ _ _ _"] | None = None,
        need_weights: bool = False,
        packings: Packings = (None, None),
    ) -> tuple[
        Float[Tensor, "batch queries d_model"], Float[Tensor, "batch heads queries keys"] | None
    ]:
        """
        Attend from each position of one sequence to the positions of another or of the same one.

        Parameters
        ----------
        queries_from : Tensor of float, shape (batch, queries, d_model)
            The sequence of the queries.
        keys_from : Tensor of float, shape (batch, keys, d_model)
            The sequence of the keys and values; the same tensor for self-attention.
        mask : Tensor of bool, shape (batch, 1 or heads, 1 or queries, keys), optional
            True where the query may attend to the key, in padded rows; everywhere if None.
        need_weights : bool, default False
            Whether to return the weights, which needs `scaled_dot_product_attention`.
        packings : pair of Packing or None, optional
            Unpadding of queries and of keys; None for padded rows.

        Returns
        -------
        context : Tensor of float, shape (batch, queries, d_model)
            The heads' contexts, concatenated and projected by W^O.
        weights : Tensor of float, shape (batch, heads, queries, keys), or None
            The weights of every head if requested, else None.

        Notes
        -----
        Section 3.2.2: ``Concat(head_1, ..., head_h) W^O``.
        """
        packed = any(packing is not None for packing in packings)
        if not packed:
            states = {"queries_from": queries_from, "keys_from": keys_from}
            check_states("MultiHeadAttention", self.d_model, 3, **states)
            if mask is not None:
                check_mask("MultiHeadAttention", mask)
        if packed or (use_cpu_kernel(queries_from, keys_from.size(1)) and not need_weights):
            return self._attend_shortly(queries_from, keys_from, mask, packings), None
        if queries_from is keys_from:
            query, key_value = self.project_qkv(queries_from)
        else:
            query, key_value = self.project_query(queries_from), self.project_kv(keys_from)
        return self._attend(query, key_value, mask, need_weights)

    def project_qkv(
        self, x: Float[Tensor, "batch time d_model"]
    ) -> tuple[Float[Tensor, "batch heads time d_k"], KeyValue]:
        """
        Project a sequence to queries, keys and values for self-attention.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            The sequence of queries, keys and values.

        Returns
        -------
        query : Tensor of float, shape (batch, heads, time, d_k)
            Queries of every head.
        key_value : KeyValue
            Keys and values of every head.

        Notes
        -----
        ``ask`` and ``offer`` in one product.
        """
        query, key, value = self._project(x, 0, 3).split(self.widths, dim=-1)
        return self._split(query), KeyValue(self._split(key), self._split(value))

    def project_query(
        self, queries_from: Float[Tensor, "batch queries d_model"]
    ) -> Float[Tensor, "batch heads queries d_k"]:
        """
        Project a sequence to queries.

        Parameters
        ----------
        queries_from : Tensor of float, shape (batch, queries, d_model)
            The sequence of the queries.

        Returns
        -------
        Tensor of float, shape (batch, heads, queries, d_k)
            Queries of every head.

        Notes
        -----
        Section 3.2.2, W^Q.
        """
        return self._split(self._project(queries_from, 0, 1))

    def project_kv(self, keys_from: Float[Tensor, "batch keys d_model"]) -> KeyValue:
        """
        Project a sequence to keys and values.

        Parameters
        ----------
        keys_from : Tensor of float, shape (batch, keys, d_model)
            The sequence of the keys and values.

        Returns
        -------
        KeyValue
            Its keys and values, split into heads.

        Notes
        -----
        Search calls this once per source sentence, not once per step.
        """
        key, value = self._project(keys_from, 1, 3).split(self.widths[1:], dim=-1)
        return KeyValue(self._split(key), self._split(value))

    def merge_heads_and_project(
        self, context: Float[Tensor, "batch heads queries d_v"]
    ) -> Float[Tensor, "batch queries d_model"]:
        """
        Concatenate the heads and project them to d_model.

        Parameters
        ----------
        context : Tensor of float, shape (batch, heads, queries, d_v)
            Context of each head.

        Returns
        -------
        Tensor of float, shape (batch, queries, d_model)
            The heads' contexts, concatenated and projected by W^O.

        Notes
        -----
        Section 3.2.2.
        """
        out: Tensor = self.out_proj(context.transpose(1, 2).flatten(2))
        return out

    def _project(self, x: Tensor, first: int, last: int) -> Tensor:
        """Multiply by some of W^Q, W^K and W^V (numbers 0, 1, 2), all heads together."""
        if last - first == 3:
            out: Tensor = self.qkv_proj(x)
            return out
        part = slice(sum(self.widths[:first]), sum(self.widths[:last]))
        bias = self.qkv_proj.bias
        return linear(x, self.qkv_proj.weight[part], None if bias is None else bias[part])

    def _split(self, x: Tensor) -> Tensor:
        """Split the last axis into heads: (batch, time, heads * d) -> (batch, heads, time, d)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def _attend_shortly(
        self,
        queries_from: Tensor,
        keys_from: Tensor,
        mask: Tensor | None,
        packings: Packings,
    ) -> Tensor:
        """Attend with the CPU kernel for short sequences, several times as fast."""
        if queries_from is keys_from:
            queries, key_value = self._project(queries_from, 0, 3), None
        else:
            queries, key_value = self._project(queries_from, 0, 1), self._project(keys_from, 1, 3)
        found = short_attention(queries, key_value, mask, self.heads, self.d_k, packings)
        out: Tensor = self.out_proj(found)
        return out

    def _attend(
        self, query: Tensor, key_value: KeyValue, mask: Tensor | None, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Attend with all heads; project (batch, heads, time, d_v) -> (batch, time, d_model)."""
        weights = None
        short_on_cpu = query.device.type == "cpu" and key_value.keys.size(2) <= SHORT
        if need_weights or short_on_cpu:
            context, weights = scaled_dot_product_attention(query, *key_value, mask)
        else:
            context = fused_attention(query, *key_value, mask)
        return self.merge_heads_and_project(context), weights if need_weights else None
