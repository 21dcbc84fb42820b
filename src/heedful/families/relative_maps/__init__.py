"""A convolution in place of an encoder's self-attention."""

from collections.abc import Iterable
from typing import ClassVar

from heedful.families.family import Family
from heedful.settings.model import ModelSettings


class RelativeMapsFamily(Family):
    """One linear map for each relative position."""

    encoder_mixers = ("convolution",)
    traits = frozenset({"window"})
    help: ClassVar = {
        "model.attention.encoder": "with convolution, model.attention.window sets the kernel width"
    }
    builder = "heedful.families.relative_maps.build"

    def clashes(self, model: ModelSettings, memory: int) -> Iterable[str]:
        """Check that the convolution has a width."""
        del memory
        if model.attention.window is None:
            yield (
                "`model.attention.window` must be the width of the convolution if "
                "`model.attention.encoder` is convolution, but got none"
            )


FAMILY = RelativeMapsFamily()
