"""
Relative position vectors (Shaw, Uszkoreit and Vaswani 2018, arXiv 1803.02155).

::

    e_ij = q_i (k_j + a_r) / sqrt(d_k)      z_i = sum_j w_ij (v_j + b_r)

r is the distance j - i, limited to the range from -K to K, so each table has 2 K + 1 vectors. All
heads of a layer share its tables, and each layer has its own tables.

One vector for each pair would take queries x keys x d_k numbers. Instead the queries are multiplied
by the 2 K + 1 vectors, and each pair of a query and a key looks up its product. For each distance,
the weights of all keys at this distance are summed, and the sum multiplies the vector of the
distance. Memory use grows like that of the scores.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.arguments import check_counts, checked
from heedful.model.initial_weights import glorot
from heedful.model.relations import Relation


class DistanceVectors(Relation):
    """
    Two vectors for each distance: one is added to keys, and the other is added to values.

    `max_distance`: K; all keys at this distance or more before a query share a vector, and all such
    keys after it share another.
    """

    is_static = True

    @checked
    def __init__(self, d_k: int, d_v: int, max_distance: int = 16) -> None:
        super().__init__()
        check_counts(d_k=d_k, d_v=d_v, max_distance=max_distance)
        self.max_distance = max_distance
        self.key_vectors = nn.Parameter(torch.zeros(2 * max_distance + 1, d_k))
        self.value_vectors = nn.Parameter(torch.zeros(2 * max_distance + 1, d_v))

    def initialize(self, generator: torch.Generator) -> None:
        """Draw both tables within Glorot's bound, as the authors' code does."""
        for table in (self.key_vectors, self.value_vectors):
            glorot(table, generator)

    def scores(
        self,
        query: Float[Tensor, "batch heads queries d_k"],
        distance: Int[Tensor, "rows queries keys"],
    ) -> Float[Tensor, "batch heads queries keys"]:
        """Multiply queries by the vectors of their distances from the keys."""
        products = query @ self.key_vectors.to(query.dtype).t()  # (batch, heads, queries, 2 K + 1)
        rows = self._rows(distance).expand(*query.shape[:3], distance.size(-1))
        return products.gather(-1, rows)

    def context(
        self,
        weights: Float[Tensor, "batch heads queries keys"],
        distance: Int[Tensor, "rows queries keys"],
    ) -> Float[Tensor, "batch heads queries d_v"]:
        """Compute the weighted sum of the distances' vectors."""
        sums = weights.new_zeros(*weights.shape[:3], len(self.value_vectors))
        sums = sums.scatter_add(-1, self._rows(distance).expand_as(weights), weights)
        return sums @ self.value_vectors.to(weights.dtype)

    def flops(self, heads: int) -> int:
        """Count the operations of one query in all heads."""
        return 2 * heads * (self.key_vectors.numel() + self.value_vectors.numel())

    def _rows(self, distance: Tensor) -> Tensor:
        """Find the row of each distance in the tables; return shape (rows, 1, queries, keys)."""
        most = self.max_distance
        return (distance.clamp(-most, most) + most).unsqueeze(1)

    def extra_repr(self) -> str:
        """Show the sizes in the printed module."""
        return f"max_distance={self.max_distance}"
