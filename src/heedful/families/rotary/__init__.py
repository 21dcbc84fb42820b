"""Rotary positions: queries and keys of self-attention turn with their place (Su et al. 2021)."""

from collections.abc import Iterable
from typing import ClassVar

from heedful.families.distances import beside_distances
from heedful.families.family import Family
from heedful.families.rotary.config import NAME, ROTARY, RotarySettings
from heedful.settings.model import ModelSettings


class RotaryFamily(Family):
    """Rotary positions."""

    positions = (NAME,)
    settings = RotarySettings
    condition = ROTARY
    help: ClassVar = {"model.positions": f"{NAME} turns queries and keys by their position"}
    builder = "heedful.families.rotary.build"

    def clashes(self, model: ModelSettings, memory: int) -> Iterable[str]:
        """Check that self-attention uses products, and that heads have even widths."""
        del memory
        yield from beside_distances(model, products=True)
        for side in ("encoder", "decoder"):
            heads = getattr(model, f"{side}_heads") or model.heads
            width = model.d_k or model.d_model // heads
            if getattr(model, side) == "transformer" and width % 2:
                yield (
                    f"`model.d_k` must be even if `model.positions` is {NAME}, which turns pairs "
                    f"of numbers, but heads of the {side} have {width}"
                )

    def beyond_transformer(self, model: ModelSettings) -> list[tuple[str, object]]:
        """List the positions."""
        return [("model.positions", NAME)] if model.positions == NAME else []


FAMILY = RotaryFamily()
