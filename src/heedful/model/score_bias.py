"""
Biases of the scores of self-attention that depend on the distance between query and key.

One module, such as T5's table of buckets or ALiBi's slopes, serves all layers of a stack. For
whole sequences the bias of all pairs, including the mask, is computed once per batch, and every
layer adds the same tensor. In a step of a search the query is the newest token of a hypothesis. The
distances are measured from this token to the slots of the cache.

B sentences, K hypotheses, L slots, T positions, H heads.
"""

from abc import ABC, abstractmethod
from itertools import chain

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.model.relations import Places, distances_of_slots

_LEAST_REACH = 64


class ScoreBias(nn.Module, ABC):
    """
    A bias that depends on the distance, added to each score of self-attention.

    It is added after any scaling of the scores. Cross-attention has no such bias.
    """

    @property
    def device(self) -> torch.device:
        """The device of the parameters and buffers; the CPU if there are none."""
        tensors = chain(self.parameters(), self.buffers())
        return next((tensor.device for tensor in tensors), torch.device("cpu"))

    @abstractmethod
    def forward(
        self, distance: Int[Tensor, "rows queries keys"]
    ) -> Float[Tensor, "rows heads queries keys"]:
        """
        Compute the bias of each head; a distance is the key's position minus the query's.

        If a query may not attend to a key, the bias does not matter, but must be finite.
        """


def bias_of_pairs(
    score_bias: ScoreBias | None,
    mask: Bool[Tensor, "_ _ _ time"] | None,
    time: int,
) -> Float[Tensor, "_ heads time time"] | None:
    """Compute the bias of all pairs, minus infinity where the mask is false; None without bias."""
    if score_bias is None:
        return None
    device = score_bias.device if mask is None else mask.device
    bias: Tensor = score_bias(Places.in_order(time, device).distances)  # (1, H, T, T)
    return bias if mask is None else bias.masked_fill(~mask, float("-inf"))


def bias_of_slots(
    score_bias: ScoreBias | None, mask_bias: Float[Tensor, "sentences width slots"], heads: int
) -> Float[Tensor, "sentences heads width slots"]:
    """Compute the bias of the scores of the newest tokens. `mask_bias`: the bias of a cache."""
    # copied instead of expanded, because the kernels of a step need dense biases
    of_heads = mask_bias.unsqueeze(1).repeat(1, heads, 1, 1)  # (B, H, K, L)
    if score_bias is None:
        return of_heads
    return of_heads.add_(score_bias(distances_of_slots(mask_bias)))


class DistanceTable:
    """The biases of all distances, for weights that no longer change; thread-safe."""

    def __init__(self, score_bias: ScoreBias) -> None:
        self.score_bias = score_bias
        self._table: Tensor | None = None

    def up_to(self, reach: int) -> Float[Tensor, "heads distances"]:
        """Return the biases of distances from -n to n, for an n of at least `reach`."""
        table = self._table
        if table is None or table.size(1) < 2 * reach + 1:
            most = max(_LEAST_REACH, 2 * reach)  # doubled to avoid recomputation
            distances = torch.arange(-most, most + 1, device=self.score_bias.device)
            bias: Tensor = self.score_bias(distances[None, None])  # (1, H, 1, distances)
            table = self._table = bias[0, :, 0].float().contiguous()
        return table
