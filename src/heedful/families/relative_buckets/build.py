"""Buckets of distances from settings."""

from heedful.families.relative_buckets.buckets import RelativeBuckets
from heedful.families.relative_buckets.config import BucketSettings
from heedful.model.layer_config import LayerConfig
from heedful.settings.model import ModelSettings


def build_score_bias(settings: ModelSettings, side: str, config: LayerConfig) -> RelativeBuckets:
    """Build the table of an encoder, which has keys in both directions, or of a decoder."""
    buckets = settings.part(BucketSettings)
    return RelativeBuckets(
        config.heads, buckets.count, buckets.max_distance, bidirectional=side == "encoder"
    )
