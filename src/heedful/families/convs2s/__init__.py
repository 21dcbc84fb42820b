"""ConvS2S: convolutional encoders, and decoders that attend in each layer (Gehring et al. 2017)."""

from collections.abc import Iterable
from typing import ClassVar

from heedful.families.convs2s.clashes import convs2s_clashes
from heedful.families.convs2s.config import ConvS2SConfig, attending_layers, layers_of
from heedful.families.convs2s.recipes import CONVS2S_RECIPES
from heedful.families.family import Family
from heedful.settings.model import ModelSettings


class ConvS2S(Family):
    """Convolutional encoders and decoders of Gehring et al. (2017)."""

    encoders = decoders = ("convs2s",)
    traits = frozenset({"positions"})
    settings = ConvS2SConfig
    recipes = CONVS2S_RECIPES
    builder = "heedful.families.convs2s.build"
    readers: ClassVar = {"fairseq": "heedful.families.convs2s.fairseq"}

    def clashes(self, model: ModelSettings, memory: int) -> Iterable[str]:
        """List invalid settings."""
        return convs2s_clashes(model, memory)

    def cross_attention(self, model: ModelSettings) -> tuple[int, int]:
        """Count the layers that attend, each with one head."""
        convs2s = model.part(ConvS2SConfig)
        layers = len(layers_of(convs2s.decoder_layers))
        return len(attending_layers(convs2s.attention, layers)), 1


FAMILY = ConvS2S()
