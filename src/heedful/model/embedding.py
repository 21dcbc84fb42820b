"""Token embeddings: section 3.4 of the paper."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class _Lookup(torch.autograd.Function):
    """Take rows of a table; add their gradients up in fp32 whatever the table's type is."""

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
        total = torch.ops.aten.embedding_dense_backward(gradient.float(), ids, ctx.rows, -1, False)
        return total.to(gradient.dtype), None


def _add_rows(gradient: Tensor, ids: Tensor, rows: int) -> Tensor:
    """Add up the rows of each token in fp32; the table is far larger than what is in use of it."""
    used, place = ids.unique(return_inverse=True)
    width = gradient.size(-1)
    sums = torch.zeros(len(used), width)
    sums.index_add_(0, place.reshape(-1), gradient.reshape(-1, width).float())
    total = torch.zeros(rows, width, dtype=gradient.dtype)
    return total.index_copy_(0, used, sums.to(gradient.dtype))


class TokenEmbedding(nn.Module):
    """
    Turn token ids into vectors, scaled by sqrt(d_model).

    Parameters
    ----------
    vocabulary : int
        Number of rows.
    d_model : int
        Width.
    scale : bool, default True
        Whether to multiply by sqrt(d_model), as section 3.4 says.
    zero_token : int, optional
        A token whose vector is zero whatever the table says.

    Notes
    -----
    One table may serve the source, the target and the output product (section 3.4). The authors'
    code starts decoding from a zero vector; `zero_token` is how (their padding symbol). In bf16 a
    frequent token's gradient is a sum of hundreds of terms, more than eight bits can hold, so it
    is added up in fp32.
    """

    def __init__(
        self, vocabulary: int, d_model: int, scale: bool = True, zero_token: int | None = None
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(vocabulary, d_model))
        self.scale = math.sqrt(d_model) if scale else 1.0
        self.zero_token = zero_token

    def forward(self, ids: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time d_model"]:
        """
        Look the tokens up.

        Parameters
        ----------
        ids : Tensor of int, shape (batch, time)
            Token ids.

        Returns
        -------
        Tensor of float, shape (batch, time, d_model)
            Their scaled vectors.

        Notes
        -----
        Section 3.4.
        """
        if torch.is_grad_enabled():
            out: Tensor = _Lookup.apply(self.weight, ids)
        else:
            out = nn.functional.embedding(ids, self.weight)
        out = out * self.scale
        if self.zero_token is not None:
            out = out.masked_fill((ids == self.zero_token).unsqueeze(-1), 0.0)
        return out
