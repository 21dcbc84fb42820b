"""
The families that there are: a line for each.

The order is that of their tables in a printed recipe, and of their names in messages.
"""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

from heedful.families.family import Family, Recipe
from heedful.settings.model import ModelSettings

# Each module has a `FAMILY`.
MODULES = (
    "heedful.families.transformer",
    "heedful.families.recurrent",
    "heedful.families.convs2s",
    "heedful.families.experts",
    "heedful.families.bytenet",
    "heedful.families.pooled",
)


@cache
def families() -> tuple[Family, ...]:
    """List the families."""
    return tuple(import_module(name).FAMILY for name in MODULES)


def encoder_family(name: str) -> Family:
    """Find the family of a value of `model.encoder`."""
    return next(family for family in families() if name in family.encoders)


def decoder_family(name: str) -> Family:
    """Find the family of a value of `model.decoder`."""
    return next(family for family in families() if name in family.decoders)


def part_layers(model: ModelSettings, side: str) -> tuple[int, ...]:
    """List the layers, from 1, of the encoder or decoder that have a part of another family."""
    layers = {number for family in families() for number in family.part_layers(model, side)}
    return tuple(sorted(layers))


def family_recipes() -> Iterator[tuple[str, Recipe]]:
    """List the recipes of all families with their names."""
    for family in families():
        yield from family.recipes.items()


def readers_of(toolkit: str) -> list[Any]:
    """Import the modules by which families read another toolkit's models, and torch with them."""
    names = (family.readers[toolkit] for family in families() if toolkit in family.readers)
    return list(map(import_module, names))


def encoders() -> tuple[str, ...]:
    """List the values of `model.encoder`."""
    return tuple(name for family in families() for name in family.encoders)


def decoders() -> tuple[str, ...]:
    """List the values of `model.decoder`."""
    return tuple(name for family in families() for name in family.decoders)


def names_with(trait: str) -> tuple[str, ...]:
    """List the values of `model.encoder` and `model.decoder` of families with a trait."""
    return tuple(name for f in families() if trait in f.traits for name in f.names)
