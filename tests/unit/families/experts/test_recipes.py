"""The recipes have the published sizes, by a closed form; only counted, never allocated."""

import pytest
import torch

from heedful.config.recipes import describe, recipe, recipe_names
from heedful.families.build import build_model
from heedful.families.experts.recipes import EXPERTS_RECIPES
from heedful.model.weights import parameter_count
from tests.support.families import recipes_of
from tests.support.models import networks

LSTM = 4 * 2048 * (512 + 512) + 2 * 4 * 2048 + 512 * 2048  # inputs, states, biases, projection
REST = 5 * LSTM + 4 * 2048 * 512  # the first layer of the decoder reads the context too
REST += 2 * 512 * 512 + 512 + 3 * 32_000 * 512  # attention, embeddings and output


def built(name):
    config = recipe(name)
    with torch.device("meta"):
        return build_model(config.model, 32_000, 32_000, max_length=config.data.max_length)


@pytest.mark.family("recurrent")
@pytest.mark.parametrize(
    ("name", "experts", "gates", "count"),
    [
        ("moe", 32, 32 * 513, 235_389_504),
        ("moe-2048", 2048, (32 + 2048) * 513, 8_693_207_616),
    ],
)
def test_sizes_are_those_of_the_closed_form(name, experts, gates, count):
    model = built(name)
    assert parameter_count(model) == REST + 2 * (experts * 2 * 512 * 2048 + gates) == count
    assert list(networks(model)) == ["encoder.mixtures.2", "decoder.mixtures.1"]
    assert {mixture.experts_per_token for mixture in networks(model).values()} == {4}
    assert describe(name) == EXPERTS_RECIPES[name][0]


def test_every_recipe_of_the_family_is_counted():
    assert {name for name in recipe_names() if "moe" in name} == set(recipes_of("experts"))
    config = recipe("moe-small")
    with torch.device("meta"):
        model = build_model(config.model, 4000, 4000, max_length=config.data.max_length)
    attention = 4 * (192 * 192 + 192)
    mixture = 8 * 2 * 192 * 192 + 2 * 8 * 192
    norms = 3 * (2 + 3) * 2 * 192 + 2 * 2 * 192
    assert parameter_count(model) == 9 * attention + 6 * mixture + norms + 4000 * 192 == 5_665_920
