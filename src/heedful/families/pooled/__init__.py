"""Encoders that give every position the mean or sum of the embeddings, for comparison."""

from collections.abc import Iterable
from typing import ClassVar

from heedful.families.family import Family
from heedful.settings.model import ModelSettings


class Pooled(Family):
    """The mean or the sum of the embeddings as the state of every position."""

    encoders = ("average", "sum")
    help: ClassVar = {
        "model.encoder": "average gives every position the mean of the sentence's embeddings, and "
        "sum gives their sum"
    }
    traits = frozenset({"one-state", "unscored"})
    builder = "heedful.families.pooled.build"

    def clashes(self, model: ModelSettings, memory: int) -> Iterable[str]:
        """Check that a Transformer's decoder has residual connections."""
        del memory
        if model.decoder == "transformer" and not model.residuals:
            yield (
                f"`model.residuals` must be true if `model.encoder` is {model.encoder}, because "
                "otherwise the decoder's output would not depend on its input, but got false"
            )

    def no_alignment(self, model: ModelSettings) -> str:
        """Name the encoder, which has the same state at all positions."""
        return f"`model.encoder` is {model.encoder}"


FAMILY = Pooled()
