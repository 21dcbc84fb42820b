"""Checks for relative positions, which need self-attention over all positions of a sentence."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from heedful.families.family import Family
from heedful.families.registry import names_with
from heedful.settings.model import ModelSettings


class DistanceFamily(Family):
    """A family of relative positions, which change the attention scores."""

    of_products: ClassVar[bool] = True
    """Whether scores have to be dot products of queries and keys."""

    def clashes(self, model: ModelSettings, memory: int) -> Iterable[str]:
        """List settings that relative positions do not allow."""
        del memory
        return distance_clashes(model, self.of_products)

    def beyond_transformer(self, model: ModelSettings) -> list[tuple[str, object]]:
        """List `model.positions` with its value, if it selects this family."""
        names = [name for name in self.positions if name == model.positions]
        return [("model.positions", name) for name in names]


def distance_clashes(model: ModelSettings, products: bool = False) -> Iterator[str]:
    """
    List settings that relative positions do not allow, each with a correction.

    `products`: whether scores have to be dot products of queries and keys.
    """
    name = model.positions
    with_positions = {*names_with("positions")} - {"transformer"}
    for side in ("encoder", "decoder"):
        family, mixer = getattr(model, side), getattr(model.attention, side)
        if family in with_positions:
            yield (
                f"`model.positions` must not be {name} if `model.{side}` is {family}, whose "
                f"layers cannot use {name} positions"
            )
        elif family == "transformer" and mixer != "attention":
            yield (
                f"`model.attention.{side}` must be attention if `model.positions` is {name}, "
                f"which changes the scores of attention, but got {mixer}"
            )
    if model.attention.window is not None:
        yield (
            f"`model.attention.window` must be none if `model.positions` is {name}, but got "
            f"{model.attention.window}"
        )
    score = model.attention.score
    if products and score not in ("scaled", "unscaled"):
        yield (
            f"`model.attention.score` must be scaled or unscaled if `model.positions` is {name}, "
            f"which changes products of queries and keys, but got {score}"
        )
