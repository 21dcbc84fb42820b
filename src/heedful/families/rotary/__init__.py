"""Rotary positions: queries and keys are rotated by their position (Su et al. 2021)."""

from collections.abc import Iterable
from typing import ClassVar

from heedful.families.distances import DistanceFamily
from heedful.families.rotary.config import NAME, ROTARY, RotarySettings
from heedful.settings.model import ModelSettings


class RotaryFamily(DistanceFamily):
    """Rotary positions."""

    positions = (NAME,)
    settings = RotarySettings
    condition = ROTARY
    help: ClassVar = {"model.positions": f"{NAME} rotates queries and keys by their position"}
    builder = "heedful.families.rotary.build"

    def clashes(self, model: ModelSettings, memory: int) -> Iterable[str]:
        """Check that scores are dot products, and that heads have even widths."""
        yield from super().clashes(model, memory)
        for side in ("encoder", "decoder"):
            heads = getattr(model, f"{side}_heads") or model.heads
            width = model.d_k or model.d_model // heads
            whose = "" if model.d_k else f" of the {side}"
            if getattr(model, side) == "transformer" and width % 2:
                yield (
                    f"`model.d_k` must be even if `model.positions` is {NAME}, which rotates pairs "
                    f"of numbers, but heads{whose} are {width} wide"
                )


FAMILY = RotaryFamily()
