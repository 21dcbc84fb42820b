"""
Fastformer: additive attention with two pooled vectors instead of pairs of positions.

::

    q = W_q x      k = W_k x      v = q               (Wu et al. 2021; v shares the weights of q)
    g  = Σ_j softmax_j(W_a q_j / √d) q_j              one global query per head
    p_j = g ⊙ k_j
    h  = Σ_j softmax_j(W_b p_j / √d) p_j              one global key per head
    out_i = W_u (h ⊙ v_i) + q_i

The scores W_a q_j and W_b p_j have one number per head, computed from the full width. Time and
memory grow linearly with the length of the sequence.

In a decoder, the sums of each position must end at that position. The exact second sum would then
take quadratic time, because p_j changes with g. `CausalFastformer` is our linear variant: position
j keeps the p_j of its own global query g_j, so both sums are cumulative:

    g_i = Σ_{j≤i} softmax q_j      p_j = g_j ⊙ k_j      h_i = Σ_{j≤i} softmax p_j
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.arguments import check_counts, checked
from heedful.errors import SettingError
from heedful.kernels.api import Linear
from heedful.model.flops import RowLengths
from heedful.model.initial_weights import glorot
from heedful.model.layout import Layout, merge_heads, pad, split_heads
from heedful.model.parts import KeyValue, Mixer, TargetMixer, check_mixed

# Positions of a cumulative mean that one matrix multiplication computes, chosen by hand.
_CHUNK = 64


class Fastformer(Mixer):
    """
    Fastformer's self-attention, in place of `MultiHeadAttention`.

    Wu et al. 2021, arXiv 2108.09084. Fastformer has no attention weights for pairs of positions.
    The initial weights are Glorot's, as in our other layers; the authors draw from N(0, 0.02). The
    authors' code also has a dense layer after the attention, as in BERT.
    """

    @checked
    def __init__(self, d_model: int, heads: int, bias: bool = True) -> None:
        super().__init__()
        check_counts(d_model=d_model, heads=heads)
        if d_model % heads:
            raise SettingError(f"`heads` must divide d_model={d_model}, but {heads} does not.")
        self.d_model, self.heads = d_model, heads
        self.query_proj = Linear(d_model, d_model, bias=bias)
        self.key_proj = Linear(d_model, d_model, bias=bias)
        self.query_score = Linear(d_model, heads, bias=bias)
        self.key_score = Linear(d_model, heads, bias=bias)
        self.out_proj = Linear(d_model, d_model, bias=bias)

    def forward(
        self,
        queries_from: Float[Tensor, "batch time d_model"],
        keys_from: Float[Tensor, "batch time d_model"],
        layout: Layout | Tensor | None = None,
    ) -> tuple[Float[Tensor, "batch time d_model"], None]:
        """
        Pool the queries, then the keys, and combine the result with each position's query.

        Both arguments must be the same sequence, as in self-attention. Returns new states, and None
        in place of weights. Removed padding is restored for the two sums.
        """
        layout = Layout.of(layout)
        check_mixed("Fastformer", self.d_model, queries_from, keys_from, self._read_mask(layout))
        query = pad(self.query_proj(queries_from), layout.query_packing)
        key = pad(self.key_proj(queries_from), layout.query_packing)
        out = self._mix(query, key, layout.mask)
        return (out if layout.query_packing is None else layout.query_packing.pack(out)), None

    def _read_mask(self, layout: Layout) -> Tensor | None:
        """Return the mask that the mixer reads."""
        return layout.mask

    def initialize(self, generator: torch.Generator) -> None:
        """Initialize each matrix from Glorot's uniform distribution, and biases with zero."""
        for linear in self._maps():
            glorot(linear.weight, generator)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)

    def flops(self, lengths: RowLengths, leaves_out: bool) -> int:
        """Count the operations for all rows; removed padding is restored for the sums."""
        pooled = (self.query_score, self.key_score, self.out_proj)
        places, projected = int(lengths.places.sum()), int(lengths.computed(leaves_out).sum())
        return (
            2 * (self.query_proj.weight.numel() + self.key_proj.weight.numel()) * projected
            + 2 * sum(linear.weight.numel() for linear in pooled) * places
            + 2 * 2 * self.d_model * self._summed_vectors(lengths)  # of queries and of keys
        )

    def _summed_vectors(self, lengths: RowLengths) -> int:
        """Count the vectors that matrix multiplications add to the sums."""
        return int(lengths.places.sum())

    def _maps(self) -> tuple[Linear, ...]:
        """List the linear layers."""
        scores = (self.query_score, self.key_score)
        return (self.query_proj, self.key_proj, *scores, self.out_proj)

    def _mix(self, query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
        """Compute the output from padded queries and keys."""
        total = _mean(self._scores(self.query_score, query), query, mask)  # (batch, 1, d_model)
        product = total * key
        pooled = _mean(self._scores(self.key_score, product), product, mask)
        return self._out(pooled, query)

    def _scores(self, scorer: Linear, x: Tensor) -> Float[Tensor, "batch time heads"]:
        """Compute one score per position and head, in fp32 for the sums."""
        scores: Tensor = scorer(x) / math.sqrt(self.d_model // self.heads)
        return scores.float()

    def _out(self, pooled: Tensor, query: Tensor) -> Tensor:
        """Combine each position's query with the global key."""
        return self.out_proj(pooled * query) + query


@dataclass(frozen=True)
class RunningMean:
    """A running mean of vectors with weights e^score."""

    total: Float[Tensor, "*rows heads"]
    """Logarithm of the sum of the weights."""
    mean: Float[Tensor, "*rows heads d"]
    """Weighted mean of the vectors so far."""

    def add(self, scores: Tensor, vectors: Tensor) -> "RunningMean":
        """Add one vector per head; `scores` has shape (..., heads)."""
        total = torch.logaddexp(self.total, scores)
        old, new = (torch.exp(part - total).unsqueeze(-1) for part in (self.total, scores))
        return RunningMean(total, old * self.mean + new * vectors)

    def select(self, rows: Tensor) -> "RunningMean":
        """Select rows of flattened hypotheses."""
        return RunningMean(
            self.total.flatten(0, -2).index_select(0, rows),
            self.mean.flatten(0, -3).index_select(0, rows),
        )


@dataclass(frozen=True)
class RunningSums:
    """The state of a search instead of a key/value cache: two means per layer and hypothesis."""

    layers: tuple[list[RunningMean], ...]
    """Running means of queries and of keys; empty lists before the first token."""
    mask_bias: Float[Tensor, "sentences width 0"]
    """An empty mask, because there are no keys to attend to."""

    @classmethod
    def empty(cls, layers: int, like: Tensor) -> "RunningSums":
        """Create the state before the first token; `like` has a row for each sentence."""
        return cls(tuple([] for _ in range(layers)), like.new_zeros(len(like), 1, 0))

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "RunningSums":
        """Select the hypotheses with which the search continues."""
        count = len(self.mask_bias) if sentences is None else len(sentences)
        layers = tuple([mean.select(rows) for mean in layer] for layer in self.layers)
        bias = self.mask_bias.new_zeros(count, len(rows) // max(count, 1), 0)
        return RunningSums(layers, bias)

    def advance(self, width: int) -> "RunningSums":
        """Copy the lists for the next token of each hypothesis, so that `write` may change them."""
        bias = self.mask_bias.new_zeros(len(self.mask_bias), width, 0)
        return RunningSums(tuple([*layer] for layer in self.layers), bias)

    def write(self, layer: int, add: Callable[[list[RunningMean]], Any]) -> Any:
        """Let a layer's mixer update its means."""
        return add(self.layers[layer])


class CausalFastformer(Fastformer, TargetMixer):
    """Our linear causal variant of `Fastformer` for a decoder; no causal variant was published."""

    def _read_mask(self, layout: Layout) -> Tensor | None:
        return None

    def _mix(self, query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
        del mask  # padding is at the end, and no real position reads it
        prefix = _cumulative_mean(self._scores(self.query_score, query), query)
        product = prefix * key
        pooled = _cumulative_mean(self._scores(self.key_score, product), product)
        return self._out(pooled, query)

    def _summed_vectors(self, lengths: RowLengths) -> int:
        if lengths.by_steps:  # a search adds vectors one by one
            return 0
        chunks, rest = np.divmod(lengths.places, _CHUNK)
        return int((chunks * _CHUNK**2 + rest**2).sum())

    def start_cache(self, layers: int, memory: KeyValue, window: int | None) -> RunningSums:
        del window  # a window has an effect only in attention
        return RunningSums.empty(layers, memory.keys)

    def step(
        self,
        x: Float[Tensor, "sentences width d_model"],
        write: Callable[[Any], Any],
        mask_bias: Float[Tensor, "sentences heads width 0"],
    ) -> Float[Tensor, "sentences width d_model"]:
        del mask_bias  # the sums store no keys that a mask could hide
        query, key = self.query_proj(x), self.key_proj(x)

        def add(means: list[RunningMean]) -> Tensor:
            first = _update_mean(
                means, 0, self._scores(self.query_score, query), self._heads(query)
            )
            product = first.to(key.dtype) * key
            scores = self._scores(self.key_score, product)
            return _update_mean(means, 1, scores, self._heads(product))

        pooled: Tensor = write(add)
        return self._out(pooled.to(query.dtype), query)

    def _heads(self, x: Tensor) -> Tensor:
        """Split the width into heads: (sentences, width, heads, d), in fp32."""
        return x.unflatten(2, (self.heads, -1)).float()


def _update_mean(means: list[RunningMean], number: int, scores: Tensor, vectors: Tensor) -> Tensor:
    """Add vectors to a mean, or create it; return its value (sentences, width, d_model)."""
    if len(means) == number:
        means.append(RunningMean(scores, vectors))
    else:
        old = means[number]
        rows = replace(old, total=_as(old.total, scores), mean=_as(old.mean, vectors))
        means[number] = rows.add(scores, vectors)
    return means[number].mean.flatten(2)


def _as(old: Tensor, new: Tensor) -> Tensor:
    """Group rows by sentence, and repeat them if hypotheses branch off without `select`."""
    old = old.reshape(len(new), -1, *new.shape[2:])
    return old.repeat_interleave(new.size(1) // old.size(1), 1)


def _mean(scores: Tensor, x: Tensor, mask: Tensor | None) -> Float[Tensor, "batch 1 d_model"]:
    """Compute the softmax-weighted mean of all positions, for each head."""
    if mask is not None:
        hidden = ~mask[:, 0, 0].unsqueeze(2)  # (batch, time, 1)
        # the smallest finite number, so that a row without real tokens has no NaN
        scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=1).to(x.dtype).transpose(1, 2).unsqueeze(2)
    return merge_heads(weights @ split_heads(x, scores.size(2)))


def _cumulative_mean(scores: Tensor, x: Tensor) -> Float[Tensor, "batch time d_model"]:
    """
    Compute the softmax-weighted mean of each position and all earlier positions, for each head.

    Each chunk needs one matrix multiplication for its own positions, and adds the mean of all
    earlier positions. All weights are e^(score - log-sum-exp), at most one.
    """
    vectors = split_heads(x.float(), scores.size(2))  # (batch, heads, time, d)
    scores = scores.transpose(1, 2)  # (batch, heads, time)
    totals, means = torch.logcumsumexp(scores, dim=2), list[Tensor]()
    for first in range(0, scores.size(2), _CHUNK):
        part = slice(first, first + _CHUNK)
        total = totals[:, :, part].unsqueeze(3)
        gap = scores[:, :, part].unsqueeze(2) - total  # (batch, heads, queries, keys)
        hidden = torch.ones_like(gap[0, 0], dtype=torch.bool).triu(1)
        mean = torch.exp(gap.masked_fill(hidden, float("-inf"))) @ vectors[:, :, part]
        if means:
            carried = torch.exp(totals[:, :, first - 1, None, None] - total)
            mean = mean + carried * means[-1][:, :, -1:]
        means.append(mean)
    return merge_heads(torch.cat(means, dim=2)).to(x.dtype)
