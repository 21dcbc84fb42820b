"""
Buckets of distances, as in T5 (Raffel et al. 2020, arXiv 1910.10683, section 2.1).

::

    distance of the key    0  1  2  ...  e-1 | e ................... max_distance and beyond
    bucket                 0  1  2  ...  e-1 | e + floor(log(distance / e) / log(max / e) * (n - e))

The first e = ⌊n / 2⌋ of the n buckets have one distance each. The bounds of the other buckets are
spaced logarithmically, so buckets of large distances are wider. In an encoder, n is half of
`count`, once for keys before a query and once for keys after it. In a decoder, n is `count`. Each
head has one learned number per bucket, which is added to the score before the softmax. All layers
of a side share these numbers.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.arguments import check_counts, checked
from heedful.errors import SettingError
from heedful.model.score_bias import ScoreBias


class RelativeBuckets(ScoreBias):
    """
    A learned number for each head and bucket of distances.

    `bidirectional`: whether keys may follow the query, as in an encoder.

    Initial numbers are zero, so distances have no effect before training.
    """

    bounds: Tensor

    @checked
    def __init__(
        self, heads: int, count: int = 32, max_distance: int = 128, bidirectional: bool = True
    ) -> None:
        super().__init__()
        check_counts(heads=heads, count=count, max_distance=max_distance)
        one_way = count // 2 if bidirectional else count
        exact = one_way // 2
        if exact < 1 or max_distance <= exact:
            raise SettingError(
                f"`count` must be at least {4 if bidirectional else 2} and `max_distance` above "
                f"{exact}, but got {count} and "
                f"{max_distance}."
            )
        self.one_way, self.bidirectional = one_way, bidirectional
        self.weight = nn.Parameter(torch.zeros(count, heads))
        bounds = first_distances(one_way, max_distance)
        self.register_buffer("bounds", bounds.to(self.weight.device), persistent=False)

    def buckets(self, distance: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
        """Find the bucket of each distance, the key's position minus the query's."""
        # the number of buckets after the first that begin at or before this distance
        if not self.bidirectional:
            return torch.bucketize(-distance, self.bounds, right=True)
        near = torch.bucketize(distance.abs(), self.bounds, right=True)
        return near + (distance > 0) * self.one_way

    def forward(
        self, distance: Int[Tensor, "rows queries keys"]
    ) -> Float[Tensor, "rows heads queries keys"]:
        """Look up every head's number for each distance."""
        biases = nn.functional.embedding(self.buckets(distance), self.weight)
        return biases.permute(0, 3, 1, 2)  # (rows, heads, queries, keys)


def first_distances(buckets: int, most: int) -> Int[Tensor, " bounds"]:
    """List the smallest distance of each bucket except the first, in the order of buckets."""
    exact = buckets // 2
    # The logarithm is computed in fp32 on the CPU, as in the training of the published models. In
    # another precision, some distances at a bound would fall into another bucket.
    with torch.device("cpu"):
        distance = torch.arange(exact, most + 1)
        share = torch.log(distance.float() / exact) / math.log(most / exact)
        bucket = exact + (share * (buckets - exact)).long()
        bucket = bucket.clamp_(max=buckets - 1)
        later = torch.searchsorted(bucket, torch.arange(exact + 1, buckets)) + exact
        return torch.cat((torch.arange(1, exact + 1), later))
