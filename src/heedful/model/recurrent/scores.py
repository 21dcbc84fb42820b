"""
Attention with one query a step and one head, as recurrent decoders use it.

Keys are what a score compares with the query, computed once a sentence; the context is the mean of
the memory's states by the weights. (Bahdanau et al. 2015, section 3.1; Luong et al. 2015, section
3.1.)
"""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.model.cpu.linear import Linear

Score = Literal["dot", "general", "scaled", "additive", "normed-additive"]


class RecurrentAttention(nn.Module):
    """
    Attention of a recurrent decoder to the memory: how a query q and a memory state h compare.

    - dot: q h
    - general: q W h
    - scaled: g q W h, with a learned number g that begins at 1
    - additive: v tanh(W q + U h), with inner width `width`
    - normed-additive: g v / |v| tanh(W q + U h + b), with g beginning at width^-0.5

    Luong et al. 2015, section 3.1, name the first two; the additive one is Bahdanau et al. 2015,
    section A.1.2. The two with g are those of the tf-nmt tutorial (`scaled_luong` and
    `normed_bahdanau`); g is a weight, not the Transformer's constant.
    """

    def __init__(self, score: Score, query_width: int, memory_width: int, width: int) -> None:
        super().__init__()
        self.score = score
        self.query_proj = self.key_proj = self.energy = self.scale = self.bias = None
        if score in ("additive", "normed-additive"):
            self.query_proj = Linear(query_width, width, bias=False)
            self.key_proj = Linear(memory_width, width, bias=False)
            self.energy = nn.Parameter(torch.zeros(width))
        elif score != "dot":
            self.key_proj = Linear(memory_width, query_width, bias=False)
        if score == "normed-additive":
            self.bias = nn.Parameter(torch.zeros(width))
            self.scale = nn.Parameter(torch.full((), width**-0.5))
        elif score == "scaled":
            self.scale = nn.Parameter(torch.ones(()))

    def project(
        self, memory: Float[Tensor, "sentences source memory_width"]
    ) -> Float[Tensor, "sentences source key_width"]:
        """Compute the keys (U h, W h, or h itself), once a sentence."""
        return memory if self.key_proj is None else self.key_proj(memory)

    def forward(
        self,
        query: Float[Tensor, "sentences queries query_width"],
        keys: Float[Tensor, "sentences source key_width"],
        values: Float[Tensor, "sentences source memory_width"],
        mask: Bool[Tensor, "sentences 1 source"],
    ) -> tuple[
        Float[Tensor, "sentences queries memory_width"], Float[Tensor, "sentences queries source"]
    ]:
        """
        Compute the context of each query, and the weights, of which each row sums to one.

        Queries are all hypotheses of a sentence, or all positions. The additive scores hold
        sentences x queries x source x width numbers at once.
        """
        scores = self._scores(query, keys)  # (sentences, queries, source)
        # the least finite number, so that a row without a real token has no NaN
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, dim=-1)
        return torch.bmm(weights, values), weights

    def _scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """Compare each query with each key."""
        if self.query_proj is None or self.energy is None:
            scores = torch.bmm(query, keys.transpose(1, 2))
            return scores if self.scale is None else scores * self.scale
        projected = self.query_proj(query)  # (sentences, queries, width)
        if self.bias is not None:
            projected = projected + self.bias
        energy = self.energy
        if self.scale is not None:
            energy = energy * (self.scale / torch.linalg.vector_norm(energy))
        inner = torch.tanh(projected.unsqueeze(2) + keys.unsqueeze(1))
        return inner @ energy  # (sentences, queries, source, width) x (width,)
