"""
Rotary positions (Su et al. 2021, arXiv 2104.09864).

::

    [ x_j     ]    [ cos a  -sin a ] [ x_j     ]
    [ x_{j+h} ] -> [ sin a   cos a ] [ x_{j+h} ],   a = position * base^(-j/h),   h = d_k / 2

Each number of the first half of a head is paired with a number of the second half, as in Llama. The
paper pairs neighbors, which corresponds to another order of the rows of W^Q and W^K. The difference
between the angles of a query at i and a key at j depends only on j - i. So their dot product
depends on the positions only through j - i.

Angles are computed in double precision, so that position 100,000 is as exact as position 1. Tensors
with fewer bits than fp32 are rotated in fp32.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.arguments import check_counts, checked
from heedful.errors import SettingError
from heedful.model.relations import Places, Rotation


class RotaryPositions(Rotation):
    """
    Rotation of pairs of numbers in each head by the position of the token.

    `d_k`: width of a head. `base`: pairs rotate by 1 down to nearly 1 / base radians per position.
    """

    is_static = True

    @checked
    def __init__(self, d_k: int, base: float = 10000.0) -> None:
        super().__init__()
        check_counts(d_k=d_k)
        if d_k % 2:
            raise SettingError(f"`d_k` must be even, because pairs are rotated, but is {d_k}.")
        if not base > 1.0:
            raise SettingError(f"`base` must be above 1, but is {base}.")
        self.d_k, self.base = d_k, base

    def forward(
        self, x: Float[Tensor, "batch time width"], places: Places
    ) -> Float[Tensor, "batch time width"]:
        """Rotate the heads, which are concatenated on the last axis."""
        wide = torch.promote_types(x.dtype, torch.float32)
        cos, sin = (part.to(wide).unsqueeze(-2) for part in self.circle(places))
        # (batch, time, heads, d_k / 2), times (rows, time, 1, d_k / 2)
        first, second = x.unflatten(-1, (-1, 2, self.d_k // 2)).to(wide).unbind(-2)
        turned = torch.stack((first * cos - second * sin, first * sin + second * cos), dim=-2)
        return turned.flatten(-3).to(x.dtype)

    def circle(
        self, places: Places
    ) -> tuple[Float[Tensor, "rows time half"], Float[Tensor, "rows time half"]]:
        """Compute cosine and sine of the angle of each pair at each position."""
        numbers, longest = places
        # in rows of several sentences, many tokens have the same position
        if longest is not None and longest < numbers.numel():
            every = Places.in_order(longest, numbers.device)
            cos, sin = (part[0][numbers] for part in self.circle(every))
            return cos, sin
        half = self.d_k // 2
        powers = torch.arange(half, device=numbers.device, dtype=torch.float64) / half
        angles = numbers.double().unsqueeze(-1) * self.base**-powers
        return angles.cos(), angles.sin()

    def extra_repr(self) -> str:
        """Show the sizes in the printed module."""
        return f"d_k={self.d_k}, base={self.base:g}"
