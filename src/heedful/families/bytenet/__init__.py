"""ByteNet: dilated convolutions on characters, without attention (Kalchbrenner et al. 2016)."""

from collections.abc import Iterable

from heedful.families.bytenet.clashes import bytenet_clashes
from heedful.families.bytenet.config import ByteNetConfig
from heedful.families.bytenet.recipes import BYTENET_RECIPES
from heedful.families.family import Family
from heedful.settings.model import ModelSettings


class ByteNet(Family):
    """ByteNet's encoder and decoder."""

    encoders = decoders = ("bytenet",)
    traits = frozenset({"layers"})
    settings = ByteNetConfig
    recipes = BYTENET_RECIPES
    builder = "heedful.families.bytenet.build"

    def clashes(self, model: ModelSettings, memory: int) -> Iterable[str]:
        """List invalid settings."""
        return bytenet_clashes(model, memory)

    def no_attention(self, model: ModelSettings) -> str:
        """Name `model.decoder`, because ByteNet's decoder never attends."""
        del model
        return "`model.decoder` is bytenet"


FAMILY = ByteNet()
