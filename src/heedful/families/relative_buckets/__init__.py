"""Buckets of distances, whose biases are added to self-attention scores (Raffel et al. 2020)."""

from collections.abc import Iterable
from typing import ClassVar

from heedful.families.distances import DistanceFamily
from heedful.families.relative_buckets.config import BUCKETS, NAME, BucketSettings
from heedful.settings.model import ModelSettings


class RelativeBucketsFamily(DistanceFamily):
    """Buckets of distances, as in T5."""

    positions = (NAME,)
    settings = BucketSettings
    of_products = False
    condition = BUCKETS
    help: ClassVar = {"model.positions": f"{NAME} adds relative position biases to the scores (T5)"}
    builder = "heedful.families.relative_buckets.build"

    def clashes(self, model: ModelSettings, memory: int) -> Iterable[str]:
        """Check that self-attention can add a bias to scores; check the range of the buckets."""
        yield from super().clashes(model, memory)
        buckets = model.part(BucketSettings)
        if buckets.max_distance <= buckets.count // 2:
            yield (
                "`model.relative_buckets.max_distance` must be above half of "
                f"`model.relative_buckets.count` ({buckets.count // 2}), because smaller distances "
                f"have one bucket each, but got {buckets.max_distance}"
            )


FAMILY = RelativeBucketsFamily()
