"""Norms of queries and keys over the features of each head."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

BuildHeadNorm = Callable[[int, float], nn.Module]
"""Builds a norm from the width of a head and the epsilon that is added to the variance."""


class HeadNorms(nn.Module):
    """Norms of queries (times `factor`) and of keys, each shared by all heads."""

    def __init__(self, build: BuildHeadNorm, d_k: int, epsilon: float, factor: float = 1.0) -> None:
        super().__init__()
        self.query, self.key = build(d_k, epsilon), build(d_k, epsilon)
        self.d_k, self.factor = d_k, factor

    def queries(self, x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows width"]:
        """Normalize queries, whose heads are concatenated on the last axis."""
        normalized = self.query(x.unflatten(-1, (-1, self.d_k))).flatten(-2)
        return normalized if self.factor == 1.0 else normalized * self.factor

    def keys(self, x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows width"]:
        """Normalize keys, whose heads are concatenated on the last axis."""
        return self.key(x.unflatten(-1, (-1, self.d_k))).flatten(-2)
