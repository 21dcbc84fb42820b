"""
Attention with one query per step and one head, as in recurrent decoders.

A score compares each key with the query; keys are computed once per sentence. The context is the
weighted mean of the memory's states. (Bahdanau et al. 2015, section 3.1; Luong et al. 2015, section
3.1.)
"""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.families.recurrent.products import PLAIN, StepProducts
from heedful.kernels.api import Linear
from heedful.model.flops import PerRow

Score = Literal["dot", "general", "scaled", "additive", "normed-additive", "product"]
_WITH_INNER_WIDTH = ("additive", "normed-additive", "product")


class RecurrentAttention(nn.Module):
    """
    Attention of a recurrent decoder to the memory; a score compares query q with state h.

    - dot: q h
    - general: q W h
    - scaled: g q W h, with a learned number g that begins at 1
    - additive: v tanh(W q + U h), with inner width `width`
    - normed-additive: g v / |v| tanh(W q + U h + b), where g begins at width^-0.5
    - product: the sum of v tanh(W q) tanh(U h), computed for all keys by one matrix multiplication

    Luong et al. 2015, section 3.1, name the first two scores; the additive score is from Bahdanau
    et al. 2015, section A.1.2. The two scores with g are from the tf-nmt tutorial (`scaled_luong`
    and `normed_bahdanau`); g is a weight, not the Transformer's constant. The product score is from
    Shazeer et al. 2017, appendix G.
    """

    def __init__(self, score: Score, query_width: int, memory_width: int, width: int) -> None:
        super().__init__()
        self.score = score
        compared = width if score in _WITH_INNER_WIDTH else query_width
        self._pair = compared + memory_width  # multiply-adds of a query and a state
        self.query_proj = self.key_proj = self.energy = self.scale = self.bias = None
        if score in _WITH_INNER_WIDTH:
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
        """Compute the keys (U h, W h, or h itself), once per sentence."""
        keys = memory if self.key_proj is None else self.key_proj(memory)
        return torch.tanh(keys) if self.score == "product" else keys

    def flops_of_keys(self, source: PerRow) -> int:
        """Count the operations of `project`. `source`: positions of each row."""
        weights = 0 if self.key_proj is None else self.key_proj.weight.numel()
        return 2 * weights * int(source.sum())

    def flops(self, queries: PerRow, source: PerRow) -> int:
        """Count the operations of all queries of each row: their scores and contexts."""
        weights = 0 if self.query_proj is None else self.query_proj.weight.numel()
        pairs = int((queries * source).sum())
        return 2 * weights * int(queries.sum()) + 2 * self._pair * pairs

    def forward(
        self,
        query: Float[Tensor, "rows queries query_width"],
        keys: Float[Tensor, "sentences source key_width"],
        values: Float[Tensor, "sentences source memory_width"],
        mask: Bool[Tensor, "rows 1 source"],
        products: StepProducts = PLAIN,
    ) -> tuple[Float[Tensor, "rows queries memory_width"], Float[Tensor, "rows queries source"]]:
        """
        Compute the context of each query, and the attention weights, whose rows sum to one.

        Queries are all hypotheses of a sentence, or all positions; `keys` and `values` may have
        more sentences, which are not read. The additive scores need memory for rows x queries x
        source x width numbers.
        """
        scores = self._scores(query, keys, products)  # (rows, queries, source)
        # the smallest finite number, so that a row without real tokens has no NaN
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, dim=-1)
        return products.mix(weights, values), weights

    def _scores(self, query: Tensor, keys: Tensor, products: StepProducts) -> Tensor:
        """Compare each query with each key."""
        if self.query_proj is None or self.energy is None:
            scores = products.compare(query, keys)
            return scores if self.scale is None else scores * self.scale
        projected = products.linear(query, self.query_proj.weight)  # (rows, queries, width)
        if self.score == "product":
            return products.compare(torch.tanh(projected) * self.energy, keys)
        if self.bias is not None:
            projected = projected + self.bias
        energy = self.energy
        if self.scale is not None:
            energy = energy * (self.scale / torch.linalg.vector_norm(energy))
        return products.compare_additively(projected, keys, energy)
