"""Layer norms of queries and keys, head by head, before their dot product."""

from typing import ClassVar

from heedful.families.family import Family


class QkLayerNormFamily(Family):
    """Norms of queries and keys that subtract the mean first."""

    qk_norms = ("layer",)
    help: ClassVar = {
        "model.attention.qk_norm": "layer subtracts the mean and divides by the standard deviation"
    }
    builder = "heedful.families.qk_layer_norm.norm"


FAMILY = QkLayerNormFamily()
