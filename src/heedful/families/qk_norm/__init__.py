"""Norms of queries and keys, head by head, before their dot product (Dehghani et al. 2023)."""

from typing import ClassVar

from heedful.families.family import Family


class QkNormFamily(Family):
    """Normalization of queries and keys by the root mean square."""

    qk_norms = ("rms",)
    help: ClassVar = {"model.attention.qk_norm": "rms divides by the root mean square"}
    builder = "heedful.families.qk_norm.norm"


FAMILY = QkNormFamily()
