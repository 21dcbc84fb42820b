"""The parsers have the published shapes, by a closed form; only counted, never allocated."""

import pytest
import torch

from heedful.config.recipes import describe, recipe, recipe_names
from heedful.families.build import build_model
from heedful.families.registry import are_offered
from heedful.model.weights import parameter_count
from heedful.tasks.parsing.recipes import PARSING_RECIPES

SYMBOLS = 128  # of Vinyals et al., section 3.2


def transformer_encoder(layers, d, ff, attentions=1):
    attention, feed_forward, norm = 4 * (d * d + d), d * ff + ff + ff * d + d, 2 * d
    return layers * (attentions * (attention + norm) + feed_forward + norm)


def transformer_decoder(layers, d, ff):
    return transformer_encoder(layers, d, ff, attentions=2)


def transformer(layers, d, ff, words):
    layers_of_both = transformer_encoder(layers, d, ff) + transformer_decoder(layers, d, ff)
    return layers_of_both + (words + 2 * SYMBOLS) * d


def lstm(inputs, h=256):
    return 4 * h * (inputs + h) + 2 * 4 * h


COUNTS = {
    "paper-parsing": transformer(4, 1024, 2048, 16_000),
    "t2t-parsing": transformer(6, 1024, 2048, 2**14),
    "parsing-small": 4 * lstm(128, 64)  # two layers in two directions
    + transformer_decoder(3, 128, 512)
    + 2 * 128  # the norm at its end
    + (2000 + 2 * SYMBOLS) * 128,
    "parsing-small-transformer": transformer(3, 128, 512, 2000) + 2 * 2 * 128,  # norms at the ends
    "parsing-small-lstm": 2 * (lstm(128, 128) + lstm(256, 128))
    + lstm(128 + 256)  # a symbol, and what the step before predicted with
    + 256 * 256  # between state and context
    + (256 * 256 + 256)  # from the encoder's last states to the decoder's first
    + (512 * 256 + 256)  # state and context make what predicts
    + (2000 + SYMBOLS) * 128
    + SYMBOLS * 256,
    "vinyals-parsing": lstm(512)
    + 2 * lstm(256)
    + lstm(512 + 512)  # a symbol, and what the step before predicted with
    + 2 * lstm(256)
    + (256 * 256 * 2 + 256)  # v tanh(W1 h + W2 d)
    + 90_000 * 512
    + SYMBOLS * 512
    + SYMBOLS * 512,  # state and context meet the output matrix
}


PARSERS = [name for name, recipe in PARSING_RECIPES.items() if are_offered(recipe.settings)]


@pytest.mark.parametrize("name", PARSERS)
def test_sizes_are_those_of_the_closed_form(name):
    config = recipe(name)
    with torch.device("meta"):
        model = build_model(config.model, config.data.vocabulary_size, SYMBOLS, max_length=513)
    assert parameter_count(model) == COUNTS[name]
    assert describe(name) == PARSING_RECIPES[name][0]


def test_every_parser_is_counted():
    parsers = {n for n in recipe_names() if recipe(n).parsing.linearisation is not None}
    assert parsers == set(PARSERS)
    assert set(PARSING_RECIPES) == set(COUNTS)
