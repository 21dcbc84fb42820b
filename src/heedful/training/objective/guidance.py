"""
Guided attention: a fading penalty on attention weights far from the diagonal.

A decoder that starts from the last state of its encoder can learn much without attending to the
source; some decoders never begin to attend. The penalty initially pulls attention to the diagonal.
After it has faded, only the likelihood remains. (Tachibana et al. 2018, “Efficiently Trainable
Text-to-Speech System Based on Deep Convolutional Networks with Guided Attention”, section 4.)
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.data.batching import Batch

# Width of the diagonal as a share of the sentence (Tachibana et al. 2018).
_WIDTH = 0.2


class GuidedAttention:
    """A linearly fading penalty on attention off the diagonal."""

    def __init__(self, strength: float, steps: int) -> None:
        self.strength, self.steps = strength, steps

    def strength_at(self, step: int) -> float:
        """Return the factor of the penalty at an update, counted from 1."""
        return self.strength * max(0.0, 1.0 - (step - 1) / self.steps)

    def penalty(
        self,
        weights: Sequence[Float[Tensor, "batch heads target source"]],
        batch: Batch,
        padding: int,
        step: int,
    ) -> Float[Tensor, ""]:
        """Sum attention off the diagonal over tokens, and average it over layers and heads."""
        distance = _distance(batch, padding).unsqueeze(1)  # (batch, 1, target, source)
        off = sum((layer.float() * distance).sum(dim=(2, 3)).mean(dim=1) for layer in weights)
        return self.strength_at(step) * torch.as_tensor(off).sum() / len(weights)


def _distance(batch: Batch, padding: int) -> Float[Tensor, "batch target source"]:
    """Return distances from the diagonal: 0 on it, near 1 far from it, 0 for padding."""
    sides = [side != padding for side in (batch.target_out, batch.source)]
    rows, columns = (
        torch.arange(side.size(1), device=side.device)
        / (side.sum(dim=1, keepdim=True) - 1).clamp(1)
        for side in sides
    )  # (batch, target), (batch, source): from 0 to 1
    between = rows.unsqueeze(2) - columns.unsqueeze(1)
    far = 1.0 - torch.exp(-(between**2) / (2 * _WIDTH**2))
    return far * sides[0].unsqueeze(2) * sides[1].unsqueeze(1)
