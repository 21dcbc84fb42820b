"""
Normalization of queries and keys by their L2 norm (Henry et al. 2020, arXiv 2010.04245).

::

    q = a_q W^Q x / |W^Q x|     k = a_k W^K x / |W^K x|     score = q k / sqrt(d_k) = g cos(q, k)

The scale ``g = a_q a_k / sqrt(d_k)`` is learned; the paper learns g itself, which needs one fewer
number. The scale begins at 10, about the paper's log2(L^2 - L) for sentences of L = 33 tokens. With
a smaller initial scale, a softmax could not choose one of many keys.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.arguments import check_counts, checked

SCALE = 10.0


class UnitLength(nn.Module):
    """
    Vectors of length one, times a learned number.

    `epsilon`: the minimum length by which vectors are divided.
    """

    @checked
    def __init__(self, d_k: int, epsilon: float) -> None:
        super().__init__()
        check_counts(d_k=d_k)
        self.epsilon = epsilon
        # the same for queries and keys, so that their product is SCALE * sqrt(d_k)
        self.weight = nn.Parameter(torch.full((1,), math.sqrt(SCALE * math.sqrt(d_k))))

    def forward(self, x: Float[Tensor, "*rows d_k"]) -> Float[Tensor, "*rows d_k"]:
        """Scale each vector to the learned length."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        unit = nn.functional.normalize(wide, dim=-1, eps=self.epsilon)
        return (unit * self.weight.to(wide.dtype)).to(x.dtype)


build_qk_norm = UnitLength
