"""The recipe has the published sizes: built, by a closed form, and as printed."""

import torch

from heedful.config.recipes import describe, recipe, recipe_names
from heedful.families.build import build_model
from heedful.families.bytenet.recipes import BYTENET_RECIPES
from heedful.model.weights import parameter_count


def test_sizes_are_those_of_the_closed_form():
    config, d, rows = recipe("bytenet"), 800, 300
    with torch.device("meta"):
        model = build_model(config.model, rows, rows, max_length=config.data.max_length)
    block = (4 + 3) * d * d + 12 * d  # two products 1x1, a kernel of 3, biases and norms
    assert block == 4_489_600
    width = 2 * d
    padding, join, final = width, 2 * width * width + width, width * width + width
    tables = 3 * rows * width + rows
    assert parameter_count(model.encoder) == 30 * block + padding == 134_689_600
    assert parameter_count(model) == 60 * block + padding + join + final + tables == 278_501_100
    assert model.encoder.sizes.dilations == model.decoder.sizes.dilations == (1, 2, 4, 8, 16) * 6
    assert model.decoder.sizes.receptive_field == 1 + 6 * 2 * 31 == 373


def test_every_recipe_of_the_family_is_counted():
    assert {name for name in recipe_names() if "bytenet" in name} == set(BYTENET_RECIPES)
    assert describe("bytenet") == BYTENET_RECIPES["bytenet"][0]
