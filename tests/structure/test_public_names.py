"""The names that `heedful` exports."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

import heedful

PROMISED = {
    "Callback": "heedful.training.callbacks",
    "Decoder": "heedful.model.layers",
    "Encoder": "heedful.model.layers",
    "FeedForward": "heedful.model.feed_forward",
    "HeedfulError": "heedful.errors",
    "LayerConfig": "heedful.model.layer_config",
    "MultiHeadAttention": "heedful.model.attention",
    "Parser": "heedful.tasks.parsing.parser",
    "Sampling": "heedful.search.settings",
    "SearchOptions": "heedful.search.settings",
    "TrainingResult": "heedful.training.result",
    "Transformer": "heedful.model.transformer",
    "Translation": "heedful.translation.result",
    "Translator": "heedful.translation.translator",
    "average": "heedful.runs.average",
    "evaluate": "heedful.analysis.evaluate",
    "plot": "heedful.analysis.plot",
    "scaled_dot_product_attention": "heedful.model.attention",
    "score": "heedful.translation.score",
    "train": "heedful.training.train",
}


def test_the_exported_names_are_these_and_no_others():
    assert sorted(heedful.__all__) == sorted([*PROMISED, "recipes"])


PARSER = pytest.param("Parser", marks=pytest.mark.task("parsing"))


@pytest.mark.parametrize("name", [*(name for name in PROMISED if name != "Parser"), PARSER])
def test_an_exported_name_is_the_one_its_module_defines(name):
    assert getattr(heedful, name) is getattr(importlib.import_module(PROMISED[name]), name)


def test_recipes_is_the_module_of_recipes():
    assert heedful.recipes is importlib.import_module("heedful.config.recipes")


def test_dir_lists_every_exported_name():
    assert set(heedful.__all__) <= set(dir(heedful))


def test_a_name_that_is_not_there_is_reported_like_on_any_module():
    with pytest.raises(AttributeError, match=re.escape("module 'heedful' has no attribute 'nope'")):
        _ = heedful.nope


def test_the_version_is_written_in_one_place():
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert "version" not in project
    assert project["dynamic"] == ["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", heedful.__version__)
    assert f"## [{heedful.__version__}]" in (root / "CHANGELOG.md").read_text()
