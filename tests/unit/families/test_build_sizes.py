import math
from functools import cache

import pytest
import torch

from heedful.config.recipes import recipe, recipe_names
from heedful.families.build import build_model, padded_vocabulary
from heedful.model.initialize import initialize
from heedful.model.weights import parameter_count


@cache
def count(name):
    """Count the parameters of a recipe, which is built but never allocated."""
    config = recipe(name)
    rows = padded_vocabulary(config.data.vocabulary_size, config.data.vocabulary_multiple)
    with torch.device("meta"):
        return parameter_count(build_model(config.model, rows, rows, max_length=257))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("paper-base", 63_082_496),
        ("paper-big", 214_245_376),
        ("t2t-base", 65_110_016),
        ("t2t-big", 218_300_416),
    ],
)
def test_parameters_are_those_of_the_shapes(name, parameters):
    assert count(name) == parameters


@pytest.mark.parametrize(
    ("row", "printed"),
    [
        ("base", 65),
        ("b-16", 58),
        ("b-32", 60),
        ("c-layers-2", 36),
        ("c-layers-4", 50),
        ("c-layers-8", 80),
        ("c-width-256", 28),
        ("c-width-1024", 168),
        ("c-ff-1024", 53),
        ("c-ff-4096", 90),
    ],
)
def test_table_3_prints_these_millions_of_parameters(row, printed):
    assert round(count(f"table3-{row}") / 1e6) == printed


# `moe-2048`, which has thousands of modules, is built in families/experts/test_recipes.py.
@pytest.mark.parametrize("name", [name for name in recipe_names() if name != "moe-2048"])
def test_every_recipe_can_be_built(name):
    assert count(name) > 100_000


def test_initial_weights_follow_the_authors_first_code():
    config = recipe("paper-base").with_settings(
        {"model.encoder_layers": 1, "model.decoder_layers": 1}
    )
    model = build_model(config.model, 1000, 1000, max_length=8)
    initialize(model, 1)
    layer = model.decoder.layers[0]
    fused = layer.self_attention.qkv_proj.weight.detach().abs().max()
    assert float(fused) == pytest.approx(math.sqrt(6 / 2048), rel=1e-3)
    cross = layer.cross_attention.qkv_proj.weight.detach()
    assert float(cross[:512].abs().max()) == pytest.approx(math.sqrt(6 / 1024), rel=1e-3)
    assert float(cross[512:].abs().max()) == pytest.approx(math.sqrt(6 / 1536), rel=1e-3)
    assert float(model.embed_source.weight.detach().std()) == pytest.approx(512**-0.5, rel=1e-2)
    assert layer.feed_forward.linear1.bias.abs().max() == 0


def test_the_seed_decides_the_weights_and_nothing_else_does():
    config = recipe("tiny").model
    first, second, other = (build_model(config, 50, 50, max_length=8) for _ in range(3))
    initialize(first, 5)
    torch.manual_seed(99)
    torch.rand(3)
    initialize(second, 5)
    initialize(other, 6)
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, second.state_dict()[name])
    assert not torch.equal(first.embed_source.weight, other.embed_source.weight)


def test_no_weight_is_left_as_torch_made_it():
    config = recipe("tiny").model.model_copy(
        update={"tie_embeddings": "none", "positions": "learned"}
    )
    model = build_model(config, 50, 50, max_length=8)
    for parameter in model.parameters():
        torch.nn.init.constant_(parameter, 7.0)
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.reset_parameters()
    initialize(model, 1)
    assert all(not (parameter == 7.0).any() for parameter in model.parameters())


@pytest.mark.parametrize(("start", "token"), [("symbol", 2), ("end", 3), ("pad", 0), ("zero", 0)])
def test_decoding_starts_as_the_settings_say(start, token):
    config = recipe("tiny").model.model_copy(update={"decoder_start": start})
    model = build_model(config, 50, 50, max_length=8)
    assert model.start_token == token
    assert model.embed_target.zero_token == (0 if start == "zero" else None)


def test_vocabularies_are_rounded_up():
    assert padded_vocabulary(37_000, 8192) == 40_960
    assert padded_vocabulary(8000, 8) == 8000
    assert padded_vocabulary(7, 1) == 7
