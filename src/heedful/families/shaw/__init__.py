"""Relative positions by vectors that are added to keys and values (Shaw et al. 2018)."""

from collections.abc import Iterable
from typing import ClassVar

from heedful.families.distances import beside_distances
from heedful.families.family import Family
from heedful.families.shaw.config import NAME, SHAW, ShawSettings
from heedful.settings.model import ModelSettings


class ShawFamily(Family):
    """Vectors of distances (Shaw et al. 2018)."""

    positions = (NAME,)
    settings = ShawSettings
    condition = SHAW
    help: ClassVar = {"model.positions": f"{NAME} adds vectors of distances to keys and values"}
    builder = "heedful.families.shaw.build"

    def clashes(self, model: ModelSettings, memory: int) -> Iterable[str]:
        """Check that self-attention uses products of queries and keys."""
        del memory
        yield from beside_distances(model, products=True)

    def beyond_transformer(self, model: ModelSettings) -> list[tuple[str, object]]:
        """List the positions."""
        return [("model.positions", NAME)] if model.positions == NAME else []


FAMILY = ShawFamily()
