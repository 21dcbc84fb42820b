"""The registry of families, and what the rest of the program learns from it."""

import ast
from pathlib import Path

import pytest

from heedful.config.model import ModelConfig
from heedful.config.recipes import describe, recipe
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


def test_every_value_of_encoder_and_decoder_has_a_family():
    for name in registry.encoders():
        assert name in registry.encoder_family(name).encoders
    for name in registry.decoders():
        assert name in registry.decoder_family(name).decoders
    fields = ModelConfig.model_fields
    assert set(fields["encoder"].annotation.__args__) == set(registry.encoders())
    assert set(fields["decoder"].annotation.__args__) == set(registry.decoders())


def test_a_table_and_recipes_are_there_under_the_names_that_a_family_gives():
    for family in registry.families():
        if family.settings is not None:
            assert any(name.startswith(f"{family.settings.table}.") for name in setting_fields())
            assert type(ModelConfig().part(family.settings)) is family.settings
        for name, entry in family.recipes.items():
            assert recipe(name).recipe == name
            assert describe(name) == entry.summary


@pytest.mark.parametrize("toolkit", ["fairseq", "joey"])
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
    names = {"a trait": ("first", "second")}.__getitem__
    assert condition.with_families(names).values == ("transformer", "first", "second")
    without = ActsIf("model.encoder", unless=("x",), families_without="a trait")
    assert without.with_families(names).unless == ("first", "second", "x")
    nobody = ActsIf("model.encoder", families_with="a trait").with_families(lambda _: ())
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
