"""
Attention: section 3.2 of the paper.

`scaled_dot_product_attention` is equation 1. `MultiHeadAttention` computes several attention
functions in parallel (section 3.2.2). `attend` chooses the kernel for whole sequences, and
`cached_attention` chooses the kernel for a step of a search. The tests compare all kernels with
equation 1. A mask is always called `mask` and is true where a query may attend to a key. In a
search, its additive form is called `mask_bias`.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.arguments import check_choice, check_counts, checked
from heedful.errors import ArgumentError, SettingError
from heedful.kernels.api import (
    SHORT,
    Dropout,
    Linear,
    cached_attention,
    linear,
    packed_attention,
    short_attention,
    split,
    use_cpu_kernel,
)
from heedful.model.additive import (
    PRODUCTS,
    Compare,
    Scoring,
    additive_scores,
    attend_by_scores,
    attend_cached_by_scores,
)
from heedful.model.head_groups import check_groups, group_heads, repeat_heads
from heedful.model.head_norms import HeadNorms
from heedful.model.kv_cache import KVCache
from heedful.model.layout import (
    EVERYWHERE,
    Layout,
    check_heads,
    check_states,
    merge_heads,
    split_heads,
)
from heedful.model.parts import KeyValue, TargetMixer
from heedful.model.relations import Places, Relation, Rotation
from heedful.model.window import Blocks
from heedful.settings.registries import SCORES


def scaled_dot_product_attention(
    query: Float[Tensor, "batch heads queries d_k"],
    key: Float[Tensor, "batch heads keys d_k"],
    value: Float[Tensor, "batch heads keys d_v"],
    mask: Bool[Tensor, "#batch #heads #queries keys"] | None = None,
) -> tuple[Float[Tensor, "batch heads queries d_v"], Float[Tensor, "batch heads queries keys"]]:
    """
    Compute equation 1, ``softmax(Q K^T / sqrt(d_k)) V``.

    Parameters
    ----------
    query : Tensor
        One row per query position.
    key : Tensor
        One row per key position.
    value : Tensor
        One row per key position, in the order of `key`.
    mask : Tensor, optional
        True where the query may attend to the key; everywhere if None.

    Returns
    -------
    context : Tensor
        The values, weighted by how well each query matches each key.
    weights : Tensor
        The attention weights; every row sums to one.

    Notes
    -----
    Section 3.2.1: dividing by sqrt(d_k) keeps the softmax out of its flat regions. If a query may
    not attend to any key, its row of weights is NaN.

    Examples
    --------
    >>> x = torch.zeros(1, 1, 2, 4)
    >>> all_open = torch.ones(1, 1, 1, 2, dtype=torch.bool)
    >>> _, weights = scaled_dot_product_attention(x, x, x, all_open)
    >>> weights[0, 0].tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    check_heads(query, key, value, mask)
    # The query is scaled instead of the scores, because it is the smaller tensor if there are more
    # than d_k keys.
    query = query * (1.0 / math.sqrt(query.size(-1)))
    scores = query @ key.transpose(-2, -1)  # (batch, heads, queries, keys)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


def attend(
    queries: Float[Tensor, "batch queries width"],
    keys: Float[Tensor, "other keys width"],
    values: Float[Tensor, "other keys width_v"],
    heads: int,
    layout: Layout = EVERYWHERE,
    need_weights: bool = False,
    scoring: Scoring = PRODUCTS,
) -> tuple[Float[Tensor, "batch queries width_v"], Float[Tensor, "_ heads _ _"] | None]:
    """
    Compute the context of all heads with the fastest suitable kernel.

    Queries, keys and values have their heads concatenated on the last axis; if padding was removed,
    they are a single row with all tokens. Four kernels compute equation 1, and the tests check that
    they agree:

    - `packed_attention`: sentences packed one after the other on a GPU;
    - `short_attention`: at most 256 keys on a CPU with oneDNN, and rows with padding removed;
    - `scaled_dot_product_attention`: requested weights, or at most 256 keys on another CPU;
    - torch's kernel, which stores no weights: all other cases.

    If `layout.window` is set, sequences are cut into blocks (`heedful.model.window`). Biases and
    the changes in `scoring` are computed in padded rows (`attend_by_scores`). Requested weights
    (batch, heads, queries, keys) also need padded rows, and any window in the mask; otherwise
    `ArgumentError` is raised.
    """
    record = need_weights or layout.weights is not None
    if record and layout.is_unpadded:
        raise ArgumentError(
            "attention weights need padded rows, but the layout has none; keep the padding."
        )
    if record and layout.window is not None:
        raise ArgumentError(
            "attention weights need a mask that includes the window, but the layout has `window`; "
            "hide the keys outside the window in the mask, and leave `window` out."
        )
    if layout.rows is not None:
        return packed_attention(queries, keys, values, heads, *layout.rows), None
    if layout.window is not None:
        blocks = Blocks.of(queries, keys, values, layout.mask, layout.window)
        context, _ = attend(*blocks.states, heads, Layout(blocks.mask), scoring=scoring)
        return blocks.join(context), None
    if scoring.is_explicit or layout.bias is not None:
        context, weights = attend_by_scores(queries, keys, values, heads, layout, scoring, record)
        return context, weights if need_weights else None
    if layout.is_unpadded or (not record and use_cpu_kernel(queries, keys.size(1))):
        packings = layout.query_packing, layout.key_packing
        return short_attention(queries, keys, values, layout.mask, heads, packings), None
    # (batch, heads, time, d_k or d_v)
    query, key, value = (split_heads(part, heads) for part in (queries, keys, values))
    if not record and (queries.device.type != "cpu" or keys.size(1) > SHORT):
        fused = nn.functional.scaled_dot_product_attention
        return merge_heads(fused(query, key, value, attn_mask=layout.mask)), None
    context, weights = scaled_dot_product_attention(query, key, value, layout.mask)
    if layout.weights is not None:
        layout.weights.append(weights)
    return merge_heads(context), weights if need_weights else None


class MultiHeadAttention(nn.Module, TargetMixer):
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
    score : str, default "scaled"
        How a query is compared with a key: ``scaled`` q k / sqrt(d_k) (paper), ``unscaled`` q k, or
        ``additive`` v tanh(q + k) with one vector v per head; or the name of a plugin's score.
    kv_heads : int, optional
        Number of key-value heads, each shared by a group of query heads; `heads` if None.
    dropout : float, default 0.0
        Dropout probability of the attention weights in training.

    Notes
    -----
    The projections W^Q, W^K and W^V of all heads are stacked in one matrix, so self-attention needs
    only one matrix multiplication for them; `out_proj` is the paper's W^O.

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
        score: str = "scaled",
        kv_heads: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_counts(d_model=d_model, heads=heads, d_k=d_k, d_v=d_v, kv_heads=kv_heads)
        if (d_k is None or d_v is None) and d_model % heads:
            raise SettingError(
                f"`heads` must divide d_model={d_model}, but {heads} does not; choose another "
                "number of heads, or give d_k and d_v."
            )
        self.d_model, self.heads = d_model, heads
        self.d_k, self.d_v = d_k or d_model // heads, d_v or d_model // heads
        self.kv_heads = check_groups(heads, kv_heads, score)
        self.widths = (heads * self.d_k, self.kv_heads * self.d_k, self.kv_heads * self.d_v)
        self.qkv_proj = Linear(d_model, sum(self.widths), bias=bias)
        self.out_proj = Linear(heads * self.d_v, d_model, bias=bias)
        check_choice("score", score, SCORES)
        self.score, self.energy = score, None
        build_scorer = SCORES[score]
        self.scorer = None if build_scorer is None else build_scorer(heads, self.d_k)
        self.norms: HeadNorms | None = None
        self.dropout = None if dropout == 0.0 else Dropout(dropout)
        self.rotation: Rotation | None = None  # rotation and relation exist only in self-attention
        self.relation: Relation | None = None
        if score == "additive":
            self.energy = nn.Parameter(torch.empty(heads, self.d_k).uniform_(-1, 1))

    def forward(
        self,
        queries_from: Float[Tensor, "batch queries d_model"],
        keys_from: Float[Tensor, "other keys d_model"],
        layout: Layout | Bool[Tensor, "_ _ _ _"] | None = None,
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "batch queries d_model"], Float[Tensor, "_ heads _ _"] | None]:
        """
        Attend from each position of a sequence to the positions of the same or another sequence.

        Parameters
        ----------
        queries_from : Tensor
            The sequence of the queries.
        keys_from : Tensor
            The sequence of the keys and values; the same tensor for self-attention. If its padding
            was removed, it is a single row (1, tokens, d_model), even if the queries are padded.
        layout : Tensor or Layout, optional
            The mask (batch, 1 or heads, 1 or queries, keys), true where the query may attend to the
            key; or a `Layout`, which also describes removed padding and windows.
        need_weights : bool, default False
            Whether to return the weights, which fused kernels do not return.

        Returns
        -------
        context : Tensor
            The heads' contexts, concatenated and projected by W^O.
        weights : Tensor or None
            The weights of every head, (batch, heads, queries, keys), if requested.
        """
        states = {"queries_from": queries_from, "keys_from": keys_from}
        check_states("MultiHeadAttention", self.d_model, 3, **states)
        # queries (batch, time, heads * d_k), keys (.., kv_heads * d_k), values (.., kv_heads * d_v)
        queries, keys, values = self.project(queries_from, keys_from)
        layout = Layout.of(layout)
        if self.rotation is not None:
            rotate = self.rotation.rotate_both
            queries, keys, values = rotate(queries, keys, values, layout.places(queries))
        keys, values = (repeat_heads(part, self.kv_heads, self.heads) for part in (keys, values))
        projected = queries, keys, values
        context, weights = attend(*projected, self.heads, layout, need_weights, self.scoring)
        return self.out_proj(context), weights  # (batch, queries, d_model)

    @property
    def scoring(self) -> Scoring:
        """How the layer differs from scaled dot-product attention."""
        return Scoring(self.compare, self.relation, self.dropout)

    @property
    def compare(self) -> Compare | None:
        """The function that computes scores; None for scaled dot products."""
        if self.energy is not None:
            return partial(additive_scores, energy=self.energy)
        return self.scorer

    def project(
        self,
        queries_from: Float[Tensor, "batch queries d_model"],
        keys_from: Float[Tensor, "other keys d_model"],
    ) -> tuple[
        Float[Tensor, "batch queries width"],
        Float[Tensor, "other keys kv_width"],
        Float[Tensor, "other keys width_v"],
    ]:
        """Project sequences to the queries, keys and values of all heads, concatenated."""
        if queries_from is keys_from:
            is_folded = self.score == "unscaled" and self.norms is None
            # (batch, time, heads * (2 d_k + d_v))
            qkv = linear(queries_from, *self.weights()) if is_folded else self.qkv_proj(keys_from)
            queries, keys, values = split(qkv, self.widths)
        else:
            queries = self._queries(queries_from)
            keys, values = split(self._keys_values(keys_from), self.widths[1:])
        if self.norms is not None:
            queries, keys = self.norms.queries(queries), self.norms.keys(keys)
        return queries, keys, values

    def project_query(
        self, queries_from: Float[Tensor, "batch queries d_model"]
    ) -> Float[Tensor, "batch heads queries d_k"]:
        """Project a sequence to the queries of every head."""
        queries = self._queries(queries_from)
        queries = queries if self.norms is None else self.norms.queries(queries)
        return split_heads(queries, self.heads)

    def project_kv(self, keys_from: Float[Tensor, "batch keys d_model"]) -> KeyValue:
        """Project a sequence to keys and values per head; a search does this once per source."""
        keys, values = self._keys_values(keys_from).split(self.widths[1:], dim=-1)
        keys = keys if self.norms is None else self.norms.keys(keys)
        return KeyValue(split_heads(keys, self.kv_heads), split_heads(values, self.kv_heads))

    def attend_cached(
        self,
        query: Float[Tensor, "batch heads queries d_k"],
        cached: KeyValue,
        mask_bias: Float[Tensor, "batch heads queries keys"],
    ) -> Float[Tensor, "batch queries d_model"]:
        """
        Attend to projected keys and values in a search, as `forward` does at the newest positions.

        Parameters
        ----------
        query : Tensor
            Queries of every head.
        cached : KeyValue
            Keys and values of every head, perhaps in a lower precision.
        mask_bias : Tensor
            Zero where the query may attend to the key, minus infinity elsewhere.

        Returns
        -------
        Tensor
            The heads' contexts, concatenated and projected by W^O.
        """
        # all queries of a group become queries of one head: (batch, kv_heads, group * queries, d_k)
        grouped, mask_bias = (group_heads(part, self.kv_heads) for part in (query, mask_bias))
        if self.compare is None and self.relation is None:
            context = cached_attention(grouped.to(cached.keys.dtype), *cached, mask_bias)
        else:
            context = attend_cached_by_scores(grouped, *cached, mask_bias, self.scoring)
        context = context.to(query.dtype).reshape(*query.shape[:3], -1)
        return self.out_proj(merge_heads(context))

    def start_cache(self, layers: int, memory: KeyValue, window: int | None) -> KVCache:
        return KVCache.empty(layers, memory, window)

    def step(
        self,
        x: Float[Tensor, "sentences width d_model"],
        write: Callable[[Any], Any],
        mask_bias: Float[Tensor, "sentences heads width slots"],
    ) -> Float[Tensor, "sentences width d_model"]:
        # (sentences, heads, width, d_k or d_v)
        queries, keys, values = self.project(x, x)
        if self.rotation is not None:
            places = Places.of_newest(mask_bias)
            queries, keys = self.rotation(queries, places), self.rotation(keys, places)
        newest = KeyValue(*(split_heads(part, self.kv_heads) for part in (keys, values)))
        return self.attend_cached(split_heads(queries, self.heads), write(newest), mask_bias)

    def weights(self) -> tuple[Tensor, Tensor | None]:
        """Return W^Q, W^K and W^V, stacked, and their biases in the form that the kernels need."""
        weight, bias = self.qkv_proj.weight, self.qkv_proj.bias
        if self.score != "unscaled" or self.norms is not None:
            return weight, bias
        # every kernel divides by sqrt(d_k), so unscaled scores need W^Q multiplied by sqrt(d_k)
        factors = weight.new_ones(len(weight), 1)
        factors[: self.widths[0]] = math.sqrt(self.d_k)
        return weight * factors, None if bias is None else bias * factors[:, 0]

    def _queries(self, x: Tensor) -> Tensor:
        """Multiply by W^Q alone: (batch, time, heads * d_k)."""
        projected = self._product(x, slice(self.widths[0]))
        is_folded = self.score == "unscaled" and self.norms is None
        return projected * math.sqrt(self.d_k) if is_folded else projected

    def _keys_values(self, x: Tensor) -> Tensor:
        """Multiply by W^K and W^V: (batch, time, kv_heads * (d_k + d_v))."""
        return self._product(x, slice(self.widths[0], None))

    def _product(self, x: Tensor, rows: slice) -> Tensor:
        """Multiply by the given rows of the stacked matrix."""
        weight, bias = self.qkv_proj.weight, self.qkv_proj.bias
        return linear(x, weight[rows], None if bias is None else bias[rows])
