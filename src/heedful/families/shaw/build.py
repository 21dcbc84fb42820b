"""Relative position vectors from settings."""

from heedful.families.shaw.config import ShawSettings
from heedful.families.shaw.vectors import DistanceVectors
from heedful.model.layer_config import LayerConfig
from heedful.settings.model import ModelSettings


def build_relation(settings: ModelSettings, side: str, config: LayerConfig) -> DistanceVectors:
    """Build the two tables of a layer of either side."""
    del side
    head = config.d_model // config.heads
    d_k, d_v = config.d_k or head, config.d_v or head
    return DistanceVectors(d_k, d_v, settings.part(ShawSettings).max_distance)
