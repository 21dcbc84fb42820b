"""Pooled encoders from settings."""

from heedful.families.pooled.encoder import PooledEncoder
from heedful.settings.model import ModelSettings


def build_encoder(settings: ModelSettings) -> PooledEncoder:
    """Build the encoder."""
    return PooledEncoder(settings.d_model, settings.encoder, settings.dropout)
