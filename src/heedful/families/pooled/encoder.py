"""
Encoders without layers: every state is the mean, or the sum, of the source's embeddings.

::

    x1  x2  x3  padding          states  m  m  m  m      m = (x1 + x2 + x3) / 3, or x1 + x2 + x3

A decoder of any family can read these states, and its attention always returns the same context.
This baseline knows the words of a sentence, but neither their order nor their relevance.
"""

from torch import Tensor, nn

from heedful.kernels.api import Dropout
from heedful.model.flops import RowLengths
from heedful.model.halves import Memory, SourceEncoder, SourceMask, States


class PooledEncoder(nn.Module, SourceEncoder):
    """
    The mean or the sum of the source's embeddings, at every position.

    Parameters
    ----------
    d_model : int
        Width of the embeddings and of the states.
    pooling : str
        ``average`` or ``sum``.
    dropout : float
        Dropout probability of the embeddings.

    Notes
    -----
    The encoder has no weights, and adds no positions, because a mean of positions depends only on
    the length.
    """

    positions_differ = False

    def __init__(self, d_model: int, pooling: str, dropout: float) -> None:
        super().__init__()
        self.width, self.pooling = d_model, pooling
        self.dropout = Dropout(dropout)

    def encode(self, x: States, mask: SourceMask, weights: list[Tensor] | None = None) -> Memory:
        real = mask[:, 0, 0, :, None]  # (batch, time, 1)
        pooled = self.dropout(x).masked_fill(~real, 0.0).sum(dim=1, keepdim=True)
        if self.pooling == "average":
            pooled = pooled / real.sum(dim=1, keepdim=True).clamp(min=1)
        return Memory(pooled.expand_as(x), mask)

    def flops(self, source: RowLengths) -> int:
        return 0  # sums are not counted
