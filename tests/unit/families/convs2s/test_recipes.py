"""Recipes of ConvS2S: sizes by closed forms that know nothing of the code."""

import pytest
import torch

from heedful.config.recipes import describe, recipe, recipe_names
from heedful.families.build import build_model
from heedful.families.convs2s.recipes import CONVS2S_RECIPES
from heedful.model.weights import parameter_count

GERMAN = 9 * [(512, 3)] + 4 * [(1024, 3)] + 2 * [(2048, 1)]
FRENCH = 6 * [(512, 3)] + 4 * [(768, 3)] + 3 * [(1024, 3)] + [(2048, 1), (4096, 1)]
# embeddings, readout, layers of the encoder and of the decoder, weights without tables
SHAPES = {
    "convs2s-en-de": (768, 512, GERMAN, GERMAN, 127_572_992),
    "convs2s-en-fr": (768, 512, FRENCH, FRENCH, 176_114_688),
    "fconv-iwslt": (256, 256, 4 * [(256, 3)], 3 * [(256, 3)], 3_945_472),
}


def normed(inputs, outputs, kernel=1):
    """v, g and b."""
    return outputs * inputs * kernel + 2 * outputs


def stack(width, layers, outputs):
    """fc1, convolutions into twice the channels, projections where they change, fc2."""
    total, below = normed(width, layers[0][0]), layers[0][0]
    for channels, kernel in layers:
        total += normed(below, 2 * channels, kernel)
        total += normed(below, channels) if below != channels else 0
        below = channels
    return total + normed(below, outputs)


def without_tables(width, readout, encoder, decoder):
    attention = sum(normed(one, width) + normed(width, one) for one, _ in decoder)
    positions = 2 * 1026 * width
    return stack(width, encoder, width) + stack(width, decoder, readout) + attention + positions


def built(config, vocabulary):
    with torch.device("meta"):
        rows = config.data.max_length + 1  # the end symbol has a position too, as in every run
        return build_model(config.model, vocabulary, vocabulary, max_length=rows)


def test_every_recipe_of_the_family_is_counted():
    found = {name for name in recipe_names() if recipe(name).model.encoder == "convs2s"}
    assert found == {*SHAPES, "convolutional-small"}


@pytest.mark.parametrize("name", SHAPES)
def test_sizes_are_those_of_fairseq(name):
    width, readout, encoder, decoder, expected = SHAPES[name]
    config = recipe(name)
    rows = config.data.vocabulary_size
    count = parameter_count(built(config, rows))
    closed_form = without_tables(width, readout, encoder, decoder)
    # both tables of embeddings, the output matrix and its bias
    assert count - rows * (2 * width + readout + 1) == closed_form == expected


def test_the_small_one_shares_its_table():
    count = parameter_count(built(recipe("convolutional-small"), 4000))
    positions = 2 * (1026 - 257) * 256
    assert count == 3_945_472 - positions + 4000 * 256 == 4_575_744


@pytest.mark.parametrize("name", [n for n, r in CONVS2S_RECIPES.items() if not r.base])
def test_no_setting_is_idle_and_none_is_that_of_another(name):
    config = recipe(name)
    assert config.recipe == name and config.train.momentum == 0.99
    assert config.search.length_penalty == "power:1"
    assert describe(name) == CONVS2S_RECIPES[name][0]
