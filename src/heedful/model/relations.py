"""
Positions inside self-attention, by other means than a bias of the scores.

::

    Rotation    turns queries and keys by their positions; every kernel stays as it is
    Relation    adds vectors of distances to keys and values; scores are computed in padded rows

Embeddings then have no positions. Each layer has its own part, which may have weights.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class Places(NamedTuple):
    """The positions of the tokens of a sequence, each in its own sentence."""

    numbers: Int[Tensor, "_ time"]
    """Counted from 0; one row serves all rows of a batch."""
    longest: int | None = None
    """Upper bound of the length of a sentence; None if unknown."""

    @classmethod
    def in_order(cls, time: int, device: torch.device) -> "Places":
        """List the positions of padded rows."""
        return cls(torch.arange(time, device=device).unsqueeze(0), time)

    @classmethod
    def of_newest(cls, mask_bias: Float[Tensor, "sentences heads width slots"]) -> "Places":
        """Find the position of the newest tokens of a search: the count of open slots before it."""
        return cls((mask_bias[:1, 0, :1] == 0).sum(dim=-1) - 1)  # (1, 1)

    @property
    def distances(self) -> Int[Tensor, "rows time time"]:
        """The position of each key less that of each query, in a sequence with itself."""
        return self.numbers.unsqueeze(1) - self.numbers.unsqueeze(2)


def distances_of_slots(
    mask_bias: Float[Tensor, "sentences width slots"],
) -> Int[Tensor, "sentences width slots"]:
    """
    Find the distance of each open slot from the newest token of its hypothesis.

    A slot keeps its place among those of its hypothesis, so open slots behind it are counted.
    """
    is_open = (mask_bias == 0).long()
    before = is_open.cumsum(dim=-1)  # open slots up to each one
    return before - is_open.sum(dim=-1, keepdim=True)  # 0 at the newest, then -1, -2, ...


class Rotation(nn.Module, ABC):
    """
    Turns queries and keys so that their products depend on the distance.

    A search keeps keys that are turned. Values and attention to the source are not changed.
    """

    is_static: ClassVar[bool] = False
    """Whether it computes by tensors of fixed shapes alone, so that graphs may record it."""

    @abstractmethod
    def forward(
        self, x: Float[Tensor, "batch time width"], places: Places
    ) -> Float[Tensor, "batch time width"]:
        """
        Turn queries or keys, whose heads lie side by side.

        Where a sentence is cut or shifted as a whole, products must stay as they are.
        """


class Relation(nn.Module, ABC):
    """
    Adds terms to scores by query and distance, and terms to contexts by distance.

    Attention is computed in padded rows then, with all scores in memory. A distance is the position
    of the key less that of the query; its tensor has one row or `batch`.
    """

    is_static: ClassVar[bool] = False
    """Whether it computes by tensors of fixed shapes alone, so that graphs may record it."""

    @abstractmethod
    def scores(
        self,
        query: Float[Tensor, "batch heads queries d_k"],
        distance: Int[Tensor, "rows queries keys"],
    ) -> Float[Tensor, "batch heads queries keys"]:
        """
        Compute what is added before the softmax; queries are divided by sqrt(d_k) already.

        Where a query may not attend to a key the number does not matter, but must be finite.
        """

    @abstractmethod
    def context(
        self,
        weights: Float[Tensor, "batch heads queries keys"],
        distance: Int[Tensor, "rows queries keys"],
    ) -> Float[Tensor, "batch heads queries d_v"]:
        """Compute what is added to the weighted sum of the values; closed keys have weight zero."""

    @abstractmethod
    def flops(self, heads: int) -> int:
        """Count the operations of one query in all heads, its pairs with keys left out."""
