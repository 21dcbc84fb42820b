"""
The known families: one line for each built-in family, and the families of plugins.

Tables of a printed recipe and names in messages appear in the order of this list.
"""

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from heedful.families.family import Family, Recipe
from heedful.settings.model import SIDES, ModelSettings
from heedful.settings.registry import Registry, cannot_take
from heedful.settings.table import SettingsTable

# Each module defines `FAMILY`.
MODULES = (
    "heedful.families.transformer",
    "heedful.families.recurrent",
    "heedful.families.convs2s",
    "heedful.families.experts",
    "heedful.families.bytenet",
    "heedful.families.pooled",
    "heedful.families.fastformer",
    "heedful.families.relative_maps",
    "heedful.families.batch_norm",
    "heedful.families.rms_norm",
    "heedful.families.qk_norm",
    "heedful.families.qk_layer_norm",
    "heedful.families.qk_l2_norm",
    "heedful.families.relative_buckets",
    "heedful.families.rotary",
    "heedful.families.shaw",
)

POSITIONS_BUILDERS = ("build_score_bias", "build_rotation", "build_relation")
"""Names of functions that build positions; each family of positions has one of them."""

# Functions, with their arguments, that a family without `builder` must have, by the setting that
# selects the family. If several are listed, the first function that the family has is used.
_BUILDERS = {
    "model.encoder": (("build_encoder",), ("settings",)),
    "model.decoder": (("build_decoder",), ("settings", "encoder")),
    "model.attention.encoder": (("build_mixer",), ("side", "layer_config")),
    "model.attention.decoder": (("build_mixer",), ("side", "layer_config")),
    "model.norm_kind": (("build_norm",), ("d_model", "epsilon")),
    "model.attention.qk_norm": (("build_qk_norm",), ("d_k", "epsilon")),
    "model.positions": (POSITIONS_BUILDERS, ("settings", "side", "layer_config")),
}


_NAMES = (
    *("encoders", "decoders", "encoder_mixers", "decoder_mixers", "norms", "qk_norms"),
    "positions",
)


def families() -> tuple[Family, ...]:
    """List the families."""
    return tuple(FAMILIES.values())


def _refusal(name: str, family: Any) -> str:
    """Describe what is wrong with a plugin's family; empty if it is valid."""
    del name
    if not isinstance(family, Family):
        return f"must be an object of a class derived from `Family`, but is {family!r}"
    for field in _NAMES:
        names = getattr(family, field)
        if not isinstance(names, tuple) or not all(isinstance(value, str) for value in names):
            return f'must have a tuple of strings as {field}, such as ("mine",), but has {names!r}'
    for setting, values in family.choices.items():
        if taken := sorted({*values}.intersection(values_of(setting))):
            return f"must have new names, but `{setting}` already has {taken[0]!r}"
        functions, arguments = _BUILDERS[setting]
        if family.builder:
            continue
        function = next((name for name in functions if hasattr(family, name)), "")
        if not function:
            wanted = " or ".join(f"{name}({', '.join(arguments)})" for name in functions)
            return f"must have {wanted} for `{setting}`"
        if "networks" in family.traits and setting in SIDES:
            arguments = (*arguments, "parts")
        if wrong := cannot_take(getattr(family, function), arguments):
            return f"has a {function} that {wrong}"
    return "" if family.settings is None else _wrong_table(family.settings)


def _wrong_table(table: Any) -> str:
    """Describe what is wrong with the settings table of a plugin's family; empty if it is valid."""
    if not (isinstance(table, type) and issubclass(table, SettingsTable)):
        return f"must have a class derived from `SettingsTable` as settings, but has {table!r}"
    taken = {f"model.{name}" for name in ModelSettings.model_fields}
    taken |= {family.settings.table for family in families() if family.settings is not None}
    if not re.fullmatch(r"model\.\w+", table.table) or table.table in taken:
        return f"must have a table of its own, such as model.mine, but has {table.table!r}"
    for name, field in table.model_fields.items():
        if field.is_required():
            return f"must have a default for each setting, but `{table.table}.{name}` has none"
    return ""


FAMILIES: Registry[Family] = Registry(
    "family", {name.rpartition(".")[2]: f"{name}:FAMILY" for name in MODULES}, _refusal
)


def family_of(setting: str, value: str) -> Family:
    """Find the family that a value of a setting selects."""
    return next(family for family in families() if value in family.choices.get(setting, ()))


def encoder_family(name: str) -> Family:
    """Find the family that a value of `model.encoder` selects."""
    return family_of("model.encoder", name)


def decoder_family(name: str) -> Family:
    """Find the family that a value of `model.decoder` selects."""
    return family_of("model.decoder", name)


def is_named(family: Family, model: ModelSettings) -> bool:
    """Return whether the settings select a family; always true for families without names."""
    choices = family.choices
    return not choices or any(chosen_value(model, name) in choices[name] for name in choices)


def chosen_value(model: ModelSettings, setting: str) -> str:
    """Return the value of a setting by its dotted name."""
    value: Any = model
    for name in setting.split(".")[1:]:
        value = getattr(value, name)
    return str(value)


def part_layers(model: ModelSettings, side: str) -> tuple[int, ...]:
    """List the layers of one side, counted from 1, that have a part of another family."""
    layers = {number for family in families() for number in family.part_layers(model, side)}
    return tuple(sorted(layers))


def family_recipes() -> Iterator[tuple[str, Recipe]]:
    """List the recipes of all families with their names."""
    for family in families():
        yield from family.recipes.items()


def readers_of(toolkit: str) -> list[Any]:
    """Import every family's module that reads a toolkit's models; these modules import torch."""
    names = (family.readers[toolkit] for family in families() if toolkit in family.readers)
    return list(map(import_module, names))


def values_of(setting: str) -> tuple[str, ...]:
    """List the values of a setting that select a family. `setting`: a dotted name."""
    return tuple(name for family in families() for name in family.choices.get(setting, ()))


def are_offered(settings: Mapping[str, object]) -> bool:
    """Return whether every family that these settings name is registered."""
    named = {name: value for name, value in settings.items() if values_of(name)}
    return all(value in values_of(name) for name, value in named.items())


def help_of(setting: str) -> str:
    """Collect the help texts of families for their values of a setting."""
    return "".join(f"; {f.help[setting]}" for f in families() if setting in f.help)


def names_with(trait: str, settings: tuple[str, ...] = SIDES) -> tuple[str, ...]:
    """List the values of some settings that select families with a trait."""
    able = [family for family in families() if trait in family.traits]
    names = (name for s in settings for family in able for name in family.choices.get(s, ()))
    return tuple(dict.fromkeys(names))
