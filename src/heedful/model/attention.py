"""
Attention: section 3.2 of the paper.

`scaled_dot_product_attention` is equation 1 as it is printed. `fused_attention` computes the same
with torch's fused kernels, which never write the weights to memory; the tests hold the two equal.
`MultiHeadAttention` runs several of them side by side (section 3.2.2). A mask is always called
`mask` and is true where a query may look at a key.

Who may look at whom; a mask is called `mask` and is true where a look is allowed.
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
    Let everyone look at the real tokens and nobody at the padding.

    Parameters
    ----------
    ids : Tensor of int, shape (batch, time)
        Token ids.
    padding : int
        The id that fills short rows up.

    Returns
    -------
    Tensor of bool, shape (batch, 1, 1, time)
        True at real tokens.

    Notes
    -----
    A row needs at least one real token: a softmax over nothing is not a number.
    """
    return (ids != padding)[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Bool[Tensor, "1 1 time time"]:
    """
    Let each position look at itself and what came before it.

    Parameters
    ----------
    length : int
        Number of positions.
    device : torch.device, optional
        Where the mask is needed.

    Returns
    -------
    Tensor of bool, shape (1, 1, length, length)
        True on and below the diagonal.

    Notes
    -----
    Section 3.2.3: no information flows leftward in the decoder. Padding stands at the end of a
    row, so real positions never see it and no further mask is needed.
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]


def scaled_dot_product_attention(
    query: Float[Tensor, "batch heads queries d_k"],
    key: Float[Tensor, "batch heads keys d_k"],
    value: Float[Tensor, "batch heads keys d_v"],
    mask: Bool[Tensor, "#batch #heads #queries keys"] | None = None,
) -> tuple[Float[Tensor, "batch heads queries d_v"], Float[Tensor, "batch heads queries keys"]]:
    """
    Weigh the values by how well each query matches each key.

    Equation 1 of the paper, ``softmax(Q K^T / sqrt(d_k)) V``.

    Parameters
    ----------
    query : Tensor of float, shape (batch, heads, queries, d_k)
        One row per position that asks.
    key : Tensor of float, shape (batch, heads, keys, d_k)
        One row per position that may answer.
    value : Tensor of float, shape (batch, heads, keys, d_v)
        What each key hands over, in the order of `key`.
    mask : Tensor of bool, shape (batch, 1 or heads, 1 or queries, keys), optional
        True where the query may look at the key; everywhere when absent.

    Returns
    -------
    context : Tensor of float, shape (batch, heads, queries, d_v)
        Weighted sum of the values.
    weights : Tensor of float, shape (batch, heads, queries, keys)
        The weights; every row sums to one.

    Notes
    -----
    Dividing by sqrt(d_k) keeps the softmax out of its flat regions (section 3.2.1). A query that
    may look at nothing has no weights: its row is not a number.

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
        One row per position that asks.
    key : Tensor of float, shape (batch, heads, keys, d_k)
        One row per position that may answer.
    value : Tensor of float, shape (batch, heads, keys, d_v)
        What each key hands over, in the order of `key`.
    mask : Tensor of bool, shape (batch, 1 or heads, 1 or queries, keys), optional
        True where the query may look at the key; everywhere when absent.

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
    Compute the context for a few queries with a mask that is written as numbers.

    Parameters
    ----------
    query : Tensor of float, shape (batch, heads, queries, d_k)
        One row per position that asks.
    key : Tensor of float, shape (batch, heads, keys, d_k)
        One row per position that may answer.
    value : Tensor of float, shape (batch, heads, keys, d_v)
        What each key hands over, in the order of `key`.
    mask_bias : Tensor of float, shape (batch, heads, queries, keys)
        Zero where the query may look at the key, minus infinity elsewhere.

    Returns
    -------
    Tensor of float, shape (batch, heads, queries, d_v)
        Weighted sum of the values.

    Notes
    -----
    For the steps of a search, where everything is small and each pass over memory counts: the
    scores are made by one product that begins with the bias.
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
    Keep what a sequence offers to be looked at.

    Attributes
    ----------
    keys : Tensor of float, shape (batch, heads, keys, d_k)
        Projected keys.
    values : Tensor of float, shape (batch, heads, keys, d_v)
        Projected values.

    Notes
    -----
    Computed once a token, read at every later step of a search.
    """

    keys: Float[Tensor, "batch heads keys d_k"]
    values: Float[Tensor, "batch heads keys d_v"]

    def select(self, rows: Tensor) -> "KeyValue":
        """
        Take rows of the batch, in any order and number.

        Parameters
        ----------
        rows : Tensor of int, shape (rows,)
            Which row of the batch each new row continues.

        Returns
        -------
        KeyValue
            The chosen rows.

        Notes
        -----
        Sentences leave a search with this.
        """
        return KeyValue(self.keys.index_select(0, rows), self.values.index_select(0, rows))


class MultiHeadAttention(nn.Module):
    """
    Attend with several heads at once and mix what they find (section 3.2.2).

    Parameters
    ----------
    d_model : int
        Width of what goes in and comes out.
    heads : int
        Number of attention functions in parallel.
    d_k : int, optional
        Width of a head's queries and keys; d_model / heads when absent.
    d_v : int, optional
        Width of a head's values; d_model / heads when absent.
    bias : bool, default True
        Whether the projections add a bias.

    Notes
    -----
    The projections W^Q, W^K, W^V of all heads are one matrix, so that self-attention is one
    product; `out_proj` is the paper's W^O. Weights are returned on request and never kept on
    the module.

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
        Let each position of one sequence look at the positions of another or of itself.

        Parameters
        ----------
        queries_from : Tensor of float, shape (batch, queries, d_model)
            The sequence that asks.
        keys_from : Tensor of float, shape (batch, keys, d_model)
            The sequence that answers; the same tensor for self-attention.
        mask : Tensor of bool, shape (batch, 1 or heads, 1 or queries, keys), optional
            True where the query may look at the key, in rows; everywhere when absent.
        need_weights : bool, default False
            Whether to return the weights, which needs the plain computation.
        packings : pair of Packing or None, optional
            How the positions that ask and those that answer are packed; in rows where None.

        Returns
        -------
        context : Tensor of float, shape (batch, queries, d_model)
            What was found, mixed by W^O.
        weights : Tensor of float, shape (batch, heads, queries, keys), or None
            The weights of every head if they were asked for.

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
        Project a sequence that looks at itself.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            The sequence that asks and answers.

        Returns
        -------
        query : Tensor of float, shape (batch, heads, time, d_k)
            What it asks.
        key_value : KeyValue
            What it offers.

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
        Project a sequence to what it asks.

        Parameters
        ----------
        queries_from : Tensor of float, shape (batch, queries, d_model)
            The sequence that asks.

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
        Project a sequence to the keys and values that it offers.

        Parameters
        ----------
        keys_from : Tensor of float, shape (batch, keys, d_model)
            The sequence that answers.

        Returns
        -------
        KeyValue
            Its keys and values, split into heads.

        Notes
        -----
        Search calls this once a source sentence, not once a step.
        """
        key, value = self._project(keys_from, 1, 3).split(self.widths[1:], dim=-1)
        return KeyValue(self._split(key), self._split(value))

    def merge_heads_and_project(
        self, context: Float[Tensor, "batch heads queries d_v"]
    ) -> Float[Tensor, "batch queries d_model"]:
        """
        Put what the heads found together.

        Parameters
        ----------
        context : Tensor of float, shape (batch, heads, queries, d_v)
            What each head found.

        Returns
        -------
        Tensor of float, shape (batch, queries, d_model)
            Mixed by W^O.

        Notes
        -----
        Section 3.2.2.
        """
        out: Tensor = self.out_proj(context.transpose(1, 2).flatten(2))
        return out

    def _project(self, x: Tensor, first: int, last: int) -> Tensor:
        """Multiply by some of W^Q, W^K and W^V (numbers 0, 1, 2), those of all heads together."""
        if last - first == 3:
            out: Tensor = self.qkv_proj(x)
            return out
        part = slice(sum(self.widths[:first]), sum(self.widths[:last]))
        bias = self.qkv_proj.bias
        return linear(x, self.qkv_proj.weight[part], None if bias is None else bias[part])

    def _split(self, x: Tensor) -> Tensor:
        """Cut the last axis into heads: (batch, time, heads * d) -> (batch, heads, time, d)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def _attend_shortly(
        self,
        queries_from: Tensor,
        keys_from: Tensor,
        mask: Tensor | None,
        packings: Packings,
    ) -> Tensor:
        """Do the same for short rows on a processor, several times as fast."""
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
        """Run the heads and mix them: (batch, heads, time, d_v) -> (batch, time, d_model)."""
        weights = None
        short_on_cpu = query.device.type == "cpu" and key_value.keys.size(2) <= SHORT
        if need_weights or short_on_cpu:
            context, weights = scaled_dot_product_attention(query, *key_value, mask)
        else:
            context = fused_attention(query, *key_value, mask)
        return self.merge_heads_and_project(context), weights if need_weights else None
