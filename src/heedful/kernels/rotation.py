"""Rotation of pairs of numbers in each head by the angles of a table, for rotary positions."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.kernels.native.product import FLOATS, is_plain, native_products

States = Float[Tensor, "batch time width"]
Table = Float[Tensor, "positions half"]


def rotate(
    x: States,
    numbers: Int[Tensor, "rows time"],
    cosines: Table,
    sines: Table,
    columns: int | None = None,
) -> States:
    """
    Rotate numbers j and j + half of each head by the angles in a row of the table.

    `numbers`: the row of the table for each position; a single row of numbers applies to all rows
    of `x`. `columns`: how many columns, from the first, are rotated; the others are copied. Each
    head has 2 * half columns, and heads are concatenated on the last axis.

    A compiled function rotates in one pass; `plain_rotate` is its plain equivalent. The results are
    equal bit for bit.
    """
    columns = x.size(-1) if columns is None else columns
    if can_rotate(x) and cosines.dtype == torch.float32 and _fits(x, numbers, cosines, columns):
        return _NativeRotation.apply(x, numbers.contiguous(), cosines, sines, columns, 1.0)
    return plain_rotate(x, numbers, cosines, sines, columns)


def can_rotate(x: States) -> bool:
    """Return whether there is a compiled function for a tensor and a table in fp32."""
    is_readable = not torch.compiler.is_compiling() and is_plain(x)
    return is_readable and x.dtype in FLOATS and native_products() is not None


def _fits(x: Tensor, numbers: Tensor, cosines: Tensor, columns: int) -> bool:
    """Return whether the compiled function, which checks no bounds, stays within the tensors."""
    batch, time, width = x.shape
    is_of_rows = tuple(numbers.shape) in ((1, time), (batch, time)) and numbers.numel() > 0
    heads_fit = columns <= width and columns % (2 * cosines.size(1)) == 0
    if not (is_of_rows and heads_fit and is_plain(numbers) and numbers.dtype == torch.int64):
        return False
    first, last = map(int, numbers.aminmax())
    return first >= 0 and last < len(cosines) and cosines.is_contiguous()


def plain_rotate(
    x: States, numbers: Int[Tensor, "rows time"], cosines: Table, sines: Table, columns: int
) -> States:
    """Compute the same as `rotate` with functions of torch."""
    # (batch, time, heads, half), times (rows, time, 1, half)
    cos, sin = cosines[numbers].unsqueeze(-2), sines[numbers].unsqueeze(-2)
    heads = x[..., :columns].unflatten(-1, (-1, 2, cosines.size(1))).to(cosines.dtype)
    first, second = heads.unbind(-2)
    turned = torch.stack((first * cos - second * sin, first * sin + second * cos), dim=-2)
    turned = turned.flatten(-3).to(x.dtype)
    return turned if columns == x.size(-1) else torch.cat((turned, x[..., columns:]), dim=-1)


class _NativeRotation(torch.autograd.Function):
    """The rotation; its gradient is the opposite rotation, so it has derivatives of all orders."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        numbers: Tensor,
        cosines: Tensor,
        sines: Tensor,
        columns: int,
        direction: float,
    ) -> Tensor:
        ctx.about, ctx.direction = (numbers, cosines, sines, columns), direction
        return _rotate(x, numbers, cosines, sines, columns, direction)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        d_x = _NativeRotation.apply(gradient, *ctx.about, -ctx.direction)
        return d_x, None, None, None, None, None


def _rotate(
    x: Tensor, numbers: Tensor, cosines: Tensor, sines: Tensor, columns: int, direction: float
) -> Tensor:
    library = native_products()
    assert library is not None  # `can_rotate`
    width, half = x.size(-1), cosines.size(1)
    rows = x.reshape(-1, width)  # (batch * time, width), mostly a view
    if rows.stride(1) != 1:
        rows = rows.contiguous()
    out = x.new_empty(x.shape)
    library.rotate(
        *(rows.data_ptr(), rows.stride(0), numbers.data_ptr(), numbers.numel()),
        *(cosines.data_ptr(), sines.data_ptr(), rows.size(0), width, columns // (2 * half), half),
        *(direction, int(x.dtype == torch.float32), torch.get_num_threads(), out.data_ptr()),
    )
    return out
