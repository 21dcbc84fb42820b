"""Fastformer from settings."""

from heedful.families.fastformer.mixer import CausalFastformer, Fastformer
from heedful.model.layer_config import LayerConfig


def build_mixer(side: str, config: LayerConfig) -> Fastformer:
    """Build Fastformer for a layer of the encoder, or its causal variant for the decoder."""
    kind = Fastformer if side == "encoder" else CausalFastformer
    return kind(config.d_model, config.heads, config.projection_bias)
