"""
Modules other than score biases that make self-attention depend on positions.

::

    Rotation    rotates queries and keys by their positions; all kernels stay the same
    Relation    adds a vector per distance to keys and values; scores are computed in padded rows

Models with such modules add no positions to embeddings. Each layer has its own module, which may
have weights.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class Places(NamedTuple):
    """The positions of tokens in their sentences."""

    numbers: Int[Tensor, "_ time"]
    """Positions from 0; a single row applies to all rows of a batch."""
    longest: int | None = None
    """Upper bound of the length of a sentence; None if unknown."""

    @classmethod
    def in_order(cls, time: int, device: torch.device) -> "Places":
        """List the positions of padded rows."""
        return cls(torch.arange(time, device=device).unsqueeze(0), time)

    @classmethod
    def of_newest(cls, mask_bias: Float[Tensor, "sentences heads width slots"]) -> "Places":
        """Return the position of a search's newest tokens: the number of earlier unmasked slots."""
        return cls((mask_bias[:1, 0, :1] == 0).sum(dim=-1) - 1)  # (1, 1)

    @property
    def distances(self) -> Int[Tensor, "rows time time"]:
        """Position of each key minus position of each query, for self-attention."""
        return self.numbers.unsqueeze(1) - self.numbers.unsqueeze(2)


def distances_of_slots(
    mask_bias: Float[Tensor, "sentences width slots"],
) -> Int[Tensor, "sentences width slots"]:
    """
    Find the distance of each unmasked slot from the newest token of its hypothesis.

    The unmasked slots of a hypothesis stay in order, so the distance is a count of unmasked slots.
    """
    is_open = (mask_bias == 0).long()
    before = is_open.cumsum(dim=-1)  # number of open slots up to each slot
    return before - is_open.sum(dim=-1, keepdim=True)  # 0 at the newest token, then -1, -2, ...


class Rotation(nn.Module, ABC):
    """
    A rotation of queries and keys, whose dot products then depend on the distance.

    A search caches rotated keys. Values and attention to the source are not changed.
    """

    is_static: ClassVar[bool] = False
    """Whether the module only uses tensors of fixed shapes, so that graphs can record it."""

    @abstractmethod
    def forward(
        self, x: Float[Tensor, "batch time width"], places: Places
    ) -> Float[Tensor, "batch time width"]:
        """
        Rotate queries or keys, whose heads are concatenated on the last axis.

        Dot products must not change if a whole sentence is shifted or its end is cut.
        """

    def rotate_both(
        self,
        queries: Float[Tensor, "batch time width"],
        keys: Float[Tensor, "batch time kv_width"],
        values: Float[Tensor, "batch time width_v"],
        places: Places,
    ) -> tuple[
        Float[Tensor, "batch time width"],
        Float[Tensor, "batch time kv_width"],
        Float[Tensor, "batch time width_v"],
    ]:
        """Rotate queries and keys; a subclass may also move the values, unchanged."""
        return self(queries, places), self(keys, places), values

    def circle(
        self, positions: int
    ) -> tuple[Float[Tensor, "positions half"], Float[Tensor, "positions half"]] | None:
        """
        Return the cosines and sines of all angles, from which compiled layers rotate.

        Numbers j and j + half of each head form a pair. The tables may have more positions. Returns
        None if the rotation is of another kind; then searches use plain layers.
        """
        del positions
        return None

    def rates(self) -> Float[Tensor, " half"] | None:
        """
        Return the radians per position of each pair of `circle`, in double precision, for exports.

        Returns None if the rotation is of another kind; then no format can express it.
        """
        return None


class Relation(nn.Module, ABC):
    """
    Terms that depend on the distance, added to the scores and contexts of attention.

    With a relation, attention is computed in padded rows, with all scores in memory. A distance is
    the key's position minus the query's; the tensor of distances has one row or `batch` rows.
    """

    is_static: ClassVar[bool] = False
    """Whether the module only uses tensors of fixed shapes, so that graphs can record it."""

    @abstractmethod
    def scores(
        self,
        query: Float[Tensor, "batch heads queries d_k"],
        distance: Int[Tensor, "rows queries keys"],
    ) -> Float[Tensor, "batch heads queries keys"]:
        """
        Compute the terms of the scores; queries are already divided by sqrt(d_k).

        If a query may not attend to a key, the term does not matter, but must be finite.
        """

    @abstractmethod
    def context(
        self,
        weights: Float[Tensor, "batch heads queries keys"],
        distance: Int[Tensor, "rows queries keys"],
    ) -> Float[Tensor, "batch heads queries d_v"]:
        """Compute the term added to the weighted sum of values; masked keys have weight zero."""

    @abstractmethod
    def flops(self, heads: int) -> int:
        """Count the operations for one query in all heads, apart from those for each key."""
