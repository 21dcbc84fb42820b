"""Relative positions as vectors that are added to keys and values (Shaw et al. 2018)."""

from typing import ClassVar

from heedful.families.distances import DistanceFamily
from heedful.families.shaw.config import NAME, SHAW, ShawSettings


class ShawFamily(DistanceFamily):
    """Relative position vectors (Shaw et al. 2018)."""

    positions = (NAME,)
    settings = ShawSettings
    condition = SHAW
    help: ClassVar = {
        "model.positions": f"{NAME} adds relative position vectors to keys and values"
    }
    builder = "heedful.families.shaw.build"


FAMILY = ShawFamily()
