"""The Transformer, as one family among others; its modules are `heedful.model`."""

from collections.abc import Iterable

from heedful.families.family import Family
from heedful.settings.model import ModelSettings


class TransformerFamily(Family):
    """The paper's model."""

    encoders = decoders = ("transformer",)
    encoder_mixers = decoder_mixers = ("attention",)
    norms = ("layer", "none")
    traits = frozenset({"layers", "positions", "networks"})
    builder = "heedful.families.transformer.build"

    def clashes(self, model: ModelSettings, memory: int) -> Iterable[str]:
        """Check that a window, which hides what follows from a decoder, may do so."""
        del memory
        attention = model.attention
        is_windowed = attention.window is not None and attention.decoder == "attention"
        if is_windowed and not model.causal_mask:
            yield (
                "`model.attention.window` hides from a decoder what follows, so "
                "`model.causal_mask` must be true with it, but false came"
            )


FAMILY = TransformerFamily()
