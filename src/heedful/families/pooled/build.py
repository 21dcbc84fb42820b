"""Pooled encoders from settings."""

from heedful.families.pooled.encoder import PooledEncoder
from heedful.model.experts.mixture import NO_MIXTURES, Mixtures
from heedful.settings.model import ModelSettings


def build_encoder(settings: ModelSettings, mixtures: Mixtures = NO_MIXTURES) -> PooledEncoder:
    """Build the encoder; it has no layers, and so no parts."""
    del mixtures
    return PooledEncoder(settings.d_model, settings.encoder, settings.dropout)
