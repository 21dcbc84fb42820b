"""The Transformer, as one family among others; its modules are in `heedful.model`."""

from collections.abc import Iterable

from heedful.families.family import Family
from heedful.families.registry import part_layers
from heedful.settings.model import ModelSettings


class TransformerFamily(Family):
    """The paper's model."""

    encoders = decoders = ("transformer",)
    encoder_mixers = decoder_mixers = ("attention",)
    norms = ("layer", "none")
    qk_norms = ("none",)
    positions = ("interleaved", "halves", "grouped", "learned", "none")
    traits = frozenset({"layers", "positions", "networks"})
    builder = "heedful.families.transformer.build"

    def clashes(self, model: ModelSettings, memory: int) -> Iterable[str]:
        """Check windows, weights that layers share, and groups of heads."""
        del memory
        attention = model.attention
        is_windowed = attention.window is not None and attention.decoder == "attention"
        if is_windowed and not model.causal_mask:
            yield (
                "`model.attention.window` hides later positions from a decoder, so "
                "`model.causal_mask` must be true with it, but got false"
            )
        for side in ("encoder", "decoder"):
            yield from self._sharing_clashes(model, side)
        if attention.kv_heads is not None:
            yield from self._group_clashes(model, attention.kv_heads)

    def _sharing_clashes(self, model: ModelSettings, side: str) -> Iterable[str]:
        """Check that each layer has weights, and that weights are numbered in layer order."""
        numbers, layers = model.sharing(side), getattr(model, f"{side}_layers")
        name, sharing = f"`model.{side}_sharing`", getattr(model, f"{side}_sharing")
        if len(numbers) != layers:
            yield (
                f"{name} must have a number for each of {layers} layers (`model.{side}_layers`), "
                f"but {sharing} has {len(numbers)}"
            )
        elif len({*numbers}) < layers and part_layers(model, side):
            yield (
                f"{name} must be empty if some layers of the {side} have networks of another "
                f"family, but got {sharing}"
            )
        elif [*dict.fromkeys(numbers)] != [*range(1, max(numbers) + 1)]:
            yield (
                f"{name} must number weights from 1, in the order in which layers first use "
                f"them, but got {sharing}"
            )

    def _group_clashes(self, model: ModelSettings, kv_heads: int) -> Iterable[str]:
        """Check that groups have equal numbers of heads, and that no score has weights per head."""
        for side in ("encoder", "decoder"):
            name = "heads" if getattr(model, f"{side}_heads") is None else f"{side}_heads"
            if getattr(model, side) == "transformer" and getattr(model, name) % kv_heads:
                yield (
                    f"`model.attention.kv_heads` must divide `model.{name}`, "
                    f"{getattr(model, name)}, but got {kv_heads}"
                )
        if model.attention.score not in ("scaled", "unscaled"):
            yield (
                "`model.attention.score` must be scaled or unscaled if `model.attention.kv_heads` "
                f"is set, but got {model.attention.score}"
            )


FAMILY = TransformerFamily()
