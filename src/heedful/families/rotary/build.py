"""Rotary positions from settings."""

from heedful.families.rotary.config import RotarySettings
from heedful.families.rotary.rotation import RotaryPositions
from heedful.model.layer_config import LayerConfig
from heedful.settings.model import ModelSettings


def build_rotation(settings: ModelSettings, side: str, config: LayerConfig) -> RotaryPositions:
    """Build the rotation for the heads of a layer of either side."""
    del side
    width = config.d_k or config.d_model // config.heads
    return RotaryPositions(width, settings.part(RotarySettings).base)
