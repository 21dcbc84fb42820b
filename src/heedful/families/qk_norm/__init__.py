"""Norms of queries and keys, head by head, before their product (Dehghani et al. 2023)."""

from typing import ClassVar

from heedful.families.family import Family


class QkNormFamily(Family):
    """Norms of queries and keys by the root of the mean square."""

    qk_norms = ("rms",)
    help: ClassVar = {"model.attention.qk_norm": "rms divides by the root of the mean square"}
    builder = "heedful.families.qk_norm.norm"


FAMILY = QkNormFamily()
