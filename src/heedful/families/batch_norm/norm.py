"""
Batch norm over the real positions of a batch (Ioffe and Szegedy 2015).

Layer norm computes mean and variance over the features of one position. Batch norm computes them
for each feature, over all real positions of a batch. So the result for a sentence depends on the
other sentences of its batch, and the result for a position depends on later positions. In
evaluation mode, running averages from training replace the batch statistics
(`docs/explain/normalization.md`).
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import batch_norm

from heedful.model.parts import PaddedNorm


class BatchNorm(nn.BatchNorm1d, PaddedNorm):
    """torch's batch norm over real positions, with mean and variance in fp32 or a wider type."""

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__(d_model, eps=eps)
        self.num_batches_tracked = None  # only a cumulative average needs this count

    def _load_from_state_dict(
        self, state_dict: dict[str, Tensor], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        # without a version, as in a plain dict, torch would add the count that is missing here
        metadata = {**local_metadata, "version": self._version}
        super()._load_from_state_dict(state_dict, prefix, metadata, *rest)

    def reset_running_stats(self) -> None:
        """Reset the running averages; torch's own method needs the number of batches."""
        if self.running_mean is not None and self.running_var is not None:
            self.running_mean.zero_()
            self.running_var.fill_(1.0)

    def forward(
        self,
        x: Float[Tensor, "batch time d_model"],
        real: Bool[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch time d_model"]:
        """
        Normalize each feature. `real`: true at real positions; None means that all are real.

        In training, padding becomes zero. A single position has no variance and is normalized as in
        evaluation.
        """
        if not self.training:
            return self._normalize(x.flatten(0, 1), False).view_as(x)
        if real is None:
            tokens = x.flatten(0, 1)
            return self._normalize(tokens, len(tokens) > 1).view_as(x)
        tokens = x[real]  # (tokens, d_model)
        normalized = self._normalize(tokens, len(tokens) > 1)
        return x.new_zeros(x.shape).masked_scatter(real.unsqueeze(2), normalized)

    def _normalize(
        self, tokens: Float[Tensor, "tokens d_model"], by_batch: bool
    ) -> Float[Tensor, "tokens d_model"]:
        """Normalize with batch statistics, which update the averages, or with running averages."""
        mean, variance = self.running_mean, self.running_var
        assert mean is not None and variance is not None
        exact = torch.promote_types(tokens.dtype, torch.float32)
        if not by_batch:  # a model may be loaded in bf16
            mean, variance = mean.to(exact), variance.to(exact)
        out = batch_norm(
            tokens.to(exact),
            mean,
            variance,
            self.weight.to(exact),
            self.bias.to(exact),
            training=by_batch,
            momentum=self.momentum or 0.0,
            eps=self.eps,
        )
        return out.to(tokens.dtype)


build_norm = BatchNorm
