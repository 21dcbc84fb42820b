"""Fastformer, additive attention in linear time, instead of self-attention (Wu et al. 2021)."""

from collections.abc import Iterable
from typing import ClassVar

from heedful.families.family import Family
from heedful.families.fastformer.clashes import fastformer_clashes
from heedful.settings.model import ModelSettings


class FastformerFamily(Family):
    """Fastformer in an encoder, and a causal variant of it in a decoder."""

    encoder_mixers = ("fastformer",)
    decoder_mixers = ("fastformer-linear",)
    traits = frozenset({"heads", "unscored"})
    help: ClassVar = {"model.attention.decoder": "fastformer-linear is heedful's own variant"}
    builder = "heedful.families.fastformer.build"

    def clashes(self, model: ModelSettings, memory: int) -> Iterable[str]:
        """List invalid settings."""
        del memory
        return fastformer_clashes(model)


FAMILY = FastformerFamily()
