"""The recurrent models before the Transformer: RNN, LSTM and GRU, with and without attention."""

from collections.abc import Iterable
from typing import ClassVar

from heedful.families.family import Family
from heedful.families.recurrent.clashes import memory_width, recurrent_clashes
from heedful.families.recurrent.config import ATTENTION, RecurrentConfig
from heedful.families.recurrent.recipes import RECURRENT_RECIPES
from heedful.settings.model import ModelSettings


class Recurrent(Family):
    """Recurrent encoders and decoders."""

    encoders = decoders = ("recurrent",)
    traits = frozenset({"layers", "networks", "coverage"})
    settings = RecurrentConfig
    conditions: ClassVar = {"search.coverage_penalty": (ATTENTION,)}
    recipes = RECURRENT_RECIPES
    table1 = "heedful.families.recurrent.table1"
    builder = "heedful.families.recurrent.build"
    readers: ClassVar = {"joey": "heedful.families.recurrent.joey"}

    def clashes(self, model: ModelSettings, memory: int) -> Iterable[str]:
        """List invalid settings."""
        return recurrent_clashes(model, memory)

    def memory_width(self, model: ModelSettings) -> int:
        """Compute the width of the encoder's states."""
        return memory_width(model)

    def cross_attention(self, model: ModelSettings) -> tuple[int, int]:
        """Return the numbers of layers and heads of cross-attention: one of each."""
        del model
        return 1, 1

    def no_attention(self, model: ModelSettings) -> str:
        """Name the setting of the score if it disables attention; empty if the decoder attends."""
        none = model.part(RecurrentConfig).score == "none"
        return "`model.recurrent.score` is none" if none else ""


FAMILY = Recurrent()
