"""
Embedding lookup whose gradient is summed in fp32.

In bf16 the gradient of a frequent token is a sum of hundreds of terms, more than eight bits of
mantissa can hold.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.machine.torch_internals import internal


def lookup(
    ids: Int[Tensor, "batch time"], weight: Float[Tensor, "vocabulary d_model"]
) -> Float[Tensor, "batch time d_model"]:
    """Look up the rows of a table, with gradients: `torch.nn.functional.embedding`."""
    if not torch.is_grad_enabled():
        return nn.functional.embedding(ids, weight)
    out: Tensor = _Lookup.apply(weight, ids)
    return out


class _Lookup(torch.autograd.Function):
    """Embedding lookup whose gradient is summed in fp32, whatever the type of the table."""

    @staticmethod
    def forward(ctx, table: Tensor, ids: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(ids)
        ctx.rows = table.size(0)
        return nn.functional.embedding(ids, table)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[no-untyped-def]
        (ids,) = ctx.saved_tensors
        if gradient.device.type == "cpu" and gradient.dtype != torch.float32:
            return _add_rows(gradient, ids, ctx.rows), None
        return _sum_rows(gradient.float(), ids, ctx.rows).to(gradient.dtype), None


def _sum_rows(gradient: Tensor, ids: Tensor, rows: int) -> Tensor:
    """Sum the gradient rows of each token into a table."""
    add = internal("torch.ops.aten.embedding_dense_backward")
    if add is None:
        total = gradient.new_zeros(rows, gradient.size(-1))
        return total.index_add_(0, ids.reshape(-1), gradient.reshape(-1, gradient.size(-1)))
    sums: Tensor = add(gradient, ids, rows, -1, False)
    return sums


def _add_rows(gradient: Tensor, ids: Tensor, rows: int) -> Tensor:
    """Sum the gradient rows of each token in fp32, only for tokens that occur."""
    used, place = ids.unique(return_inverse=True)  # (used,), (batch, time)
    width = gradient.size(-1)
    sums = torch.zeros(len(used), width)
    sums.index_add_(0, place.reshape(-1), gradient.reshape(-1, width).float())
    total = torch.zeros(rows, width, dtype=gradient.dtype)
    return total.index_copy_(0, used, sums.to(gradient.dtype))
