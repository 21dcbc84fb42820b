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

from functools import lru_cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.arguments import check_counts, checked
from heedful.errors import SettingError
from heedful.kernels.api import can_rotate, is_plain, join, rotate, split
from heedful.model.relations import Places, Rotation

States = Float[Tensor, "batch time _"]
Circle = Float[Tensor, "positions half"]
"""Cosines or sines of the angle of each pair at each position."""


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
        return rotate(x, *self._angles(x, places))

    def rotate_both(
        self, queries: States, keys: States, values: States, places: Places
    ) -> tuple[States, States, States]:
        if not can_rotate(queries):
            return super().rotate_both(queries, keys, values, places)
        # the compiled kernel of attention reads the three side by side, too
        widths = [part.size(-1) for part in (queries, keys, values)]
        together = join(queries, keys, values)
        rotated = rotate(together, *self._angles(together, places), widths[0] + widths[1])
        queries, keys, values = split(rotated, widths)
        return queries, keys, values

    def circle(self, positions: int) -> tuple[Circle, Circle]:
        return _stored_circle(_table_size(positions), self.d_k, self.base, torch.float32)

    def rates(self) -> Float[Tensor, " half"]:
        return _rates(self.d_k, self.base)

    def _angles(self, x: Tensor, places: Places) -> tuple[Int[Tensor, "rows time"], Circle, Circle]:
        """Return the row of a table for each position, and the table's cosines and sines."""
        wide = torch.promote_types(x.dtype, torch.float32)
        numbers, longest = places
        if longest is None:  # the newest tokens of a search
            every = torch.arange(numbers.numel(), device=numbers.device)
            return every.view_as(numbers), *_circle(numbers.flatten(), self.d_k, self.base, wide)
        if not torch.compiler.is_compiling() and is_plain(numbers):
            return numbers, *_stored_circle(_table_size(longest), self.d_k, self.base, wide)
        every = torch.arange(longest, device=numbers.device)
        return numbers, *_circle(every, self.d_k, self.base, wide)

    def extra_repr(self) -> str:
        """Show the sizes in the printed module."""
        return f"d_k={self.d_k}, base={self.base:g}"


def _table_size(positions: int) -> int:
    """Round up to a power of two, so that few tables are stored."""
    return 1 << (positions - 1).bit_length()


@lru_cache(maxsize=16)
def _stored_circle(
    positions: int, d_k: int, base: float, dtype: torch.dtype
) -> tuple[Circle, Circle]:
    """Compute the table for a CPU once, for all layers and batches."""
    with torch.inference_mode(False):  # training uses it, too
        return _circle(torch.arange(positions), d_k, base, dtype)


def _circle(
    numbers: Int[Tensor, " positions"], d_k: int, base: float, dtype: torch.dtype
) -> tuple[Circle, Circle]:
    """Compute cosine and sine of the angle of each pair at each position."""
    angles = numbers.double().unsqueeze(-1) * _rates(d_k, base, numbers.device)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def _rates(d_k: int, base: float, device: torch.device | None = None) -> Float[Tensor, " half"]:
    """Compute the radians per position of each pair."""
    half = d_k // 2
    return base ** -(torch.arange(half, device=device, dtype=torch.float64) / half)
