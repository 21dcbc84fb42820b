"""Recurrent recipes have the published sizes: built, by a closed form, and as printed."""

import pytest
import torch

from heedful.config.load import load_config
from heedful.config.recipes import describe, recipe, recipe_names
from heedful.errors import SettingError
from heedful.families.build import build_model
from heedful.families.recurrent.recipes import RECURRENT_RECIPES
from heedful.families.registry import part_layers
from heedful.model.weights import parameter_count
from heedful.settings.conditions import flat
from heedful.tasks.registry import task_of
from heedful.tasks.task import TRANSLATION


def lstm(inputs, width, gates=4):
    """Weights of a cell of torch: two products and two biases for each gate."""
    return gates * width * (inputs + width + 2)


def gru(inputs, width):
    return lstm(inputs, width, gates=3)


def linear(inputs, outputs):
    return (inputs + 1) * outputs


def additive(query, memory, width):
    return (query + memory + 1) * width


def stack(count, width):
    return count * lstm(width, width)


# By recipe: rows of the source and target tables, the closed form, and what was published.
# GNMT: 278 million are printed by Shazeer et al. 2017; TensorFlow's LSTM has one bias a gate.
SIZES = {
    "sutskever": (
        (160_000, 80_000),
        (160_000 + 2 * 80_000) * 1000 + stack(8, 1000),
        384e6,
    ),
    "bahdanau": (
        (30_000, 30_000),
        2 * 30_000 * 620
        + 2 * gru(620, 1000)
        + gru(620 + 2000, 1000)
        + additive(1000, 2000, 1000)
        + linear(1000, 1000)
        + linear(1000 + 620 + 2000, 1000)
        + 500 * 30_000,
        None,
    ),
    "luong": (
        (50_000, 50_000),
        3 * 50_000 * 1000 + stack(7, 1000) + lstm(2000, 1000) + 1000 * 1000 + linear(2000, 1000),
        None,
    ),
    "gnmt": (
        (32_000, 32_000),
        3 * 32_000 * 1024
        + 2 * lstm(1024, 1024)
        + lstm(2048, 1024)
        + stack(6, 1024)
        + 8 * lstm(2048, 1024)
        + additive(1024, 1024, 1024),
        None,
    ),
    "deep-att": (
        (30_000, 30_000),
        2 * 30_000 * 256
        + 2 * (lstm(256, 512) + 8 * lstm(512 + 1024, 512))
        + linear(5120, 1280)
        + lstm(256 + 1280, 512)
        + 6 * lstm(512 + 1024, 512)
        + additive(512, 1280, 512)
        + 512 * 30_000,
        None,
    ),
    "envi": (
        (17_191, 7_709),
        (17_191 + 7_709) * 128
        + 2 * lstm(128, 512)
        + lstm(128 + 512, 512)
        + additive(512, 1024, 512)
        + linear(512 + 1024, 512)
        + 512 * 7_709,
        None,
    ),
    "recurrent-small": (
        (4_000, 4_000),
        4_000 * 256
        + 2 * lstm(256, 256)
        + lstm(256 + 256, 256)
        + additive(256, 512, 256)
        + linear(256 + 512, 256)
        + linear(512, 256),
        None,
    ),
}
COUNTED = {
    "sutskever": 384_064_000,
    "bahdanau": 80_421_000,
    "luong": 221_065_000,
    "gnmt": 280_896_512,
    "deep-att": 137_910_016,
    "envi": 13_701_120,
    "recurrent-small": 3_390_208,
}


def built(config, source, target):
    with torch.device("meta"):
        return build_model(config.model, source, target, max_length=config.data.max_length)


def is_plain(config):
    """Whether it is recurrent and translates, without mixtures of experts."""
    model, task = config.model, task_of(flat(config.to_dict()))
    is_recurrent = model.encoder == "recurrent" and not part_layers(model, "encoder")
    return is_recurrent and task is TRANSLATION


def test_every_recurrent_recipe_is_counted():
    recurrent = {name for name in recipe_names() if is_plain(recipe(name))}
    assert set(SIZES) == set(COUNTED) == recurrent == set(RECURRENT_RECIPES)


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_those_of_the_closed_form_and_of_the_publication(name):
    vocabularies, closed_form, published = SIZES[name]
    count = parameter_count(built(recipe(name), *vocabularies))
    assert count == closed_form == COUNTED[name]
    if published is not None:
        assert count == pytest.approx(published, rel=0.001)


def test_a_published_recipe_has_its_vocabulary():
    """The source of `sutskever` has twice as many words, which one number cannot say."""
    for name, ((source, target), _, _) in SIZES.items():
        size = recipe(name).data.vocabulary_size
        assert size == (target if name == "sutskever" else source), name


@pytest.mark.parametrize("name", [n for n, r in RECURRENT_RECIPES.items() if not r.base])
def test_no_setting_is_idle_and_none_is_that_of_another(name):
    config = recipe(name)
    assert config.recipe == name and config.train.label_smoothing == 0.0
    assert config.model.tie_embeddings == "none"
    assert describe(name) == RECURRENT_RECIPES[name][0]


def test_gnmt_goes_on_with_sgd():
    second = {
        "train.optimizer": "sgd",
        "train.schedule": "step",
        "train.learning_rate": 0.5,
        "train.decay_start": 1_140_000,
        "train.decay_steps": 200_000,
        "train.steps": 1_940_000,
    }
    config = load_config("gnmt", second)
    assert config.train.optimizer == "sgd"
    assert config.model == recipe("gnmt").model


def test_the_small_one_does_without_attention():
    with_attention = parameter_count(built(recipe("recurrent-small"), 4000, 4000))
    blind = load_config("recurrent-small", ["model.recurrent.score=none"])
    assert blind.model.recurrent.feed == "readout"
    left = with_attention - additive(256, 512, 256) - 512 * 256
    assert parameter_count(built(blind, 4000, 4000)) == left
    choices = {"score": "none", "feed": "none", "readout": "state"}
    settings = [f"model.recurrent.{name}={value}" for name, value in choices.items()]
    bare = load_config("recurrent-small", settings)
    assert parameter_count(built(bare, 4000, 4000)) == left - linear(256, 256) - 4 * 256 * 256
    wide = [*settings, "model.recurrent.decoder_hidden_size=512"]
    with pytest.raises(SettingError, match=r"tie_embeddings` = all needs a readout"):
        load_config("recurrent-small", wide)
    plain = load_config("recurrent-small", [*wide, "model.tie_embeddings=none"])
    assert built(plain, 4000, 4000).output.weight.shape == (4000, 512)
