"""Convolutions in place of self-attention, from settings."""

from heedful.errors import SettingError
from heedful.families.relative_maps.maps import RelativeMaps
from heedful.model.layer_config import LayerConfig


def build_mixer(side: str, config: LayerConfig) -> RelativeMaps:
    """Build the maps for a layer of the encoder."""
    del side
    if config.window is None:
        raise SettingError("`window` must be the width of the convolution, but got none.")
    return RelativeMaps(config.d_model, 2 * (config.window // 2) + 1)
