"""The registry of families, and what the rest of the program learns from it."""

import ast
from pathlib import Path

import pytest

from heedful.config.model import ModelConfig
from heedful.config.recipes import describe, recipe, recipe_names
from heedful.config.schema import setting_fields
from heedful.families import registry
from heedful.families.family import Family, Recipe
from heedful.families.foreign import FamilyReader
from heedful.settings.conditions import ActsIf
from heedful.settings.model import ModelSettings

SOURCE = Path(registry.__file__).parents[1]
# Words that only a family's folder, and its line in the registry, may hold.
NAMES = ("recurrent", "convs2s", "bytenet", "experts", "mixture", "pooled")


def test_every_folder_has_its_line():
    folders = {path.parent.name for path in (SOURCE / "families").glob("*/__init__.py")}
    assert {name.rpartition(".")[2] for name in registry.MODULES} == folders


def test_every_value_that_names_a_family_is_one_of_its_setting():
    choices = [family.choices for family in registry.families()]
    for setting in set().union(*choices):
        values = registry.values_of(setting)
        assert len(values) == len(set(values))
        assert setting_fields()[setting].annotation.__args__ == values
        for value in values:
            assert value in registry.family_of(setting, value).choices[setting]
    for name in registry.values_of("model.encoder"):
        assert name in registry.encoder_family(name).encoders
    for name in registry.values_of("model.decoder"):
        assert name in registry.decoder_family(name).decoders


def test_a_recipe_of_a_family_that_is_not_here_is_not_offered():
    assert registry.are_offered({"model.encoder": "transformer", "model.d_model": 7})
    assert not registry.are_offered({"model.encoder": "transformer", "model.decoder": "oracle"})
    names = [name for name, entry in registry.family_recipes() if entry.settings]
    assert set(names) >= set(recipe_names()).intersection(names)


def test_every_trait_of_a_family_is_explained():
    contract = (SOURCE / "families" / "family.py").read_text(encoding="utf-8")
    traits = frozenset().union(*(family.traits for family in registry.families()))
    assert {trait for trait in traits if f"`{trait}`" not in contract} == set()


def test_the_help_of_a_setting_has_what_families_say():
    for family in registry.families():
        for setting, words in family.help.items():
            assert f"; {words}" in setting_fields()[setting].description


def test_a_family_is_asked_where_the_settings_name_it():
    model, transformer = ModelConfig(), registry.encoder_family("transformer")
    assert registry.is_named(transformer, model)
    assert registry.is_named(Family(), model)  # a part has no name

    class Mixing(Family):
        encoder_mixers = ("stirring",)

    assert Mixing().choices == {"model.attention.encoder": ("stirring",)}
    assert not registry.is_named(Mixing(), model)
    assert registry.chosen_value(model, "model.attention.encoder") == "attention"


def test_a_table_and_recipes_are_there_under_the_names_that_a_family_gives():
    for family in registry.families():
        if family.settings is not None:
            assert any(name.startswith(f"{family.settings.table}.") for name in setting_fields())
            assert type(ModelConfig().part(family.settings)) is family.settings
        offered = {n: r for n, r in family.recipes.items() if registry.are_offered(r.settings)}
        for name, entry in offered.items():
            assert recipe(name).recipe == name
            assert describe(name) == entry.summary


@pytest.mark.parametrize(
    "toolkit",
    [
        pytest.param("fairseq", marks=pytest.mark.family("convs2s")),
        pytest.param("joey", marks=pytest.mark.family("recurrent")),
    ],
)
def test_the_readers_of_another_toolkit_keep_their_contract(toolkit):
    readers = registry.readers_of(toolkit)
    assert readers
    assert all(isinstance(reader, FamilyReader) for reader in readers)
    assert not any(reader.is_kind({}) for reader in readers)
    assert registry.readers_of("nothing") == []


def test_a_table_of_no_family_is_not_found():
    with pytest.raises(LookupError, match="no family has the table model"):
        ModelConfig().part(ModelSettings)


def test_what_a_family_does_not_define_is_as_in_the_transformer():
    family, model = Family(), ModelConfig(d_model=64, decoder_layers=3, heads=4)
    assert family.names == family.part_layers(model, "encoder") == ()
    assert list(family.clashes(model, 64)) == []
    assert (family.memory_width(model), family.cross_attention(model)) == (64, (3, 4))
    assert family.no_attention(model) == family.no_alignment(model) == ""
    assert (family.module_counts(model), family.beyond_transformer(model)) == ({}, [])
    assert list(family.training_notes(model, 1)) == []
    assert Recipe("One sentence.", {}).base == ""


def test_a_trait_becomes_the_names_of_its_families():
    condition = ActsIf("model.encoder", ("transformer",), families_with="a trait")

    def names(trait, settings):
        assert settings == ("model.encoder",)
        return {"a trait": ("first", "second")}[trait]

    assert condition.with_families(names).values == ("transformer", "first", "second")
    without = ActsIf("model.encoder", unless=("x",), families_without="a trait")
    assert without.with_families(names).unless == ("first", "second", "x")
    nobody = ActsIf("model.encoder", families_with="a trait").with_families(lambda _, __: ())
    assert not nobody.holds_for("transformer")


@pytest.mark.parametrize("package", ["config", "exchange", "runs", "search"])
def test_no_family_is_named_outside_of_its_folder(package):
    named = []
    for file in (SOURCE / package).rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        words = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        words |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        named += [f"{file.name}: {word}" for word in words if word.lower() in NAMES]
    assert named == []
