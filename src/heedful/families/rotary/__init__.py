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
        widths = {side: _head_width(model, side) for side in ("encoder", "decoder")}
        odd = {
            side: width
            for side, width in widths.items()
            if getattr(model, side) == "transformer" and width % 2
        }
        if odd:
            # equal widths are named once, without their sides
            width = " and ".join(map(str, dict.fromkeys(odd.values())))
            yield (
                f"`model.d_k` must be even if `model.positions` is {NAME}, which rotates pairs of "
                f"numbers, but heads are {width} wide"
            )


def _head_width(model: ModelSettings, side: str) -> int:
    """Return the width of the queries of a head."""
    heads: int = getattr(model, f"{side}_heads") or model.heads
    return model.d_k or model.d_model // heads


FAMILY = RotaryFamily()
