"""The ONNX graphs compute the same as the model, for every recipe."""

import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.config import recipes
from heedful.config.model import ModelConfig
from heedful.exchange.onnx import nodes
from heedful.exchange.onnx.model import OnnxModel
from heedful.exchange.onnx.write import write_graphs
from heedful.families.build import build_model
from heedful.families.registry import part_layers
from heedful.model.initialize import initialize

SMALL = {"d_model": 16, "d_ff": 20, "heads": 4, "encoder_layers": 2, "decoder_layers": 2}


@torch.no_grad()
def lively(config, vocabularies=(30, 30), max_length=6):
    model = build_model(config, *vocabularies, max_length=max_length)
    initialize(model, 1)
    generator = torch.Generator().manual_seed(2)
    for parameter in model.parameters():
        parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
    return model.eval()


def in_onnxruntime(model, folder):
    write_graphs(model, folder, "0")
    return OnnxModel(folder, model.padding, model.start_token, model.end_token)


def hold_together(model, theirs, lengths, target, seed=3):
    generator = torch.Generator().manual_seed(seed)
    source = torch.randint(4, 30, (len(lengths), max(lengths)), generator=generator)
    for row, length in enumerate(lengths):
        source[row, length:] = 0
    target_in = torch.randint(4, 30, (len(lengths), target), generator=generator)
    target_in[:, 0] = model.start_token
    with torch.no_grad():
        expected = model.log_probabilities(model.states(source, target_in).flatten(0, 1))
    found = theirs.states(source, target_in).flatten(0, 1)
    torch.testing.assert_close(found, expected, atol=3e-5, rtol=1e-4)


@pytest.mark.family("rotary")
@pytest.mark.parametrize("base", [10000.0, 50.0])
def test_rotary_queries_and_keys_are_rotated_at_their_positions(base, tmp_path):
    widths = {"d_k": 6, "d_v": 10, "decoder_heads": 2}
    config = ModelConfig(**SMALL, **widths, positions="rotary", rotary={"base": base}, dropout=0.0)
    model = lively(config)
    hold_together(model, in_onnxruntime(model, tmp_path), (9, 4, 1), 12)


PARTS = {
    "groups": {"attention": {"kv_heads": 2}, "d_k": 6, "d_v": 10},
    "one head of keys": {"attention": {"kv_heads": 1, "score": "unscaled"}},
    "gated": {"gated": True, "activation": "silu", "feed_forward_bias": False},
    "gated relu": {"gated": True, "encoder_d_ff": 14},
    "shared layers": {
        "encoder_layers": 3,
        "encoder_sharing": [1, 2, 1],
        "decoder_sharing": [1, 1],
    },
    "embeddings alone": {"tie_embeddings": "embeddings"},
    "root mean squares": {"norm_kind": "rms", "norm": "pre", "norm_epsilon": 1e-2},
    "Llama's": {
        "attention": {"kv_heads": 2},
        **{"positions": "rotary", "norm_kind": "rms", "norm": "pre", "gated": True},
        **{"activation": "silu", "projection_bias": False, "feed_forward_bias": False},
    },
}
NEEDED = {"root mean squares": ("rms_norm",), "Llama's": ("rms_norm", "rotary")}


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(part, marks=[pytest.mark.family(*NEEDED[part])] if part in NEEDED else [])
        for part in PARTS
    ],
)
def test_later_parts_are_those_of_the_model(part, tmp_path):
    model = lively(ModelConfig(**SMALL | PARTS[part], dropout=0.0))
    hold_together(model, in_onnxruntime(model, tmp_path), (9, 4, 1), 8)


def shrunk(name):
    """The settings of a recipe at the sizes of a test."""
    config = recipes.recipe(name).model.model_dump()
    widths = {side: value and 8 for side, value in config.items() if side in ("d_k", "d_v")}
    sides = {
        f"{side}_{what}": None for side in ("encoder", "decoder") for what in ("heads", "d_ff")
    }
    return ModelConfig(**{**config, **SMALL, **widths, **sides, "dropout": 0.0})


# Recurrent models and mixtures of experts cannot be exported. Most recipes of the others differ in
# their sizes alone: the last one of each of the other settings.
MODELS = {name: recipes.recipe(name).model for name in recipes.recipe_names()}
TRANSFORMERS = [
    name
    for name, model in MODELS.items()
    if model.encoder == "transformer"
    and not any(part_layers(model, side) for side in ("encoder", "decoder"))
]
UNLIKE = {repr(shrunk(name)): name for name in TRANSFORMERS}


@pytest.mark.parametrize("name", UNLIKE.values())
def test_every_recipe(name, tmp_path):
    model = lively(shrunk(name))
    theirs = in_onnxruntime(model, tmp_path)
    for lengths, target in (([5, 2, 9], 8), ([1], 1), ([300], 2), ([2, 1], 40)):
        hold_together(model, theirs, lengths, target)


@settings(max_examples=30)
@given(
    norm=st.sampled_from(["post", "pre"]),
    positions=st.sampled_from(["interleaved", "halves", "grouped", "learned"]),
    position_offset=st.integers(0, 3),
    start=st.sampled_from(["symbol", "zero", "pad", "end"]),
    tie=st.sampled_from(["all", "output", "none"]),
    activation=st.sampled_from(["relu", "gelu", "gelu_tanh", "silu"]),
    widths=st.sampled_from([(None, None), (3, 5), (6, 2)]),
    biases=st.tuples(st.booleans(), st.booleans()),
    heads=st.sampled_from([(None, None), (2, 8)]),
    scale=st.booleans(),
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    target=st.integers(1, 9),
)
def test_settings_in_any_mixture(
    norm,
    positions,
    position_offset,
    start,
    tie,
    activation,
    widths,
    biases,
    heads,
    scale,
    lengths,
    target,
):
    config = ModelConfig(
        **SMALL,
        norm=norm,
        positions=positions,
        position_offset=position_offset,
        decoder_start=start,
        tie_embeddings=tie,
        activation=activation,
        d_k=widths[0],
        d_v=widths[1],
        projection_bias=biases[0],
        output_bias=biases[1],
        scale_embeddings=scale,
        encoder_heads=heads[0],
        decoder_heads=heads[1],
    )
    model = lively(config)
    with tempfile.TemporaryDirectory() as folder:
        hold_together(model, in_onnxruntime(model, Path(folder)), lengths, target)


def test_weights_too_large_for_a_file_lie_beside_it(tmp_path, monkeypatch):
    model = lively(ModelConfig(**SMALL))
    monkeypatch.setattr(nodes, "_LARGEST", 1000)
    hold_together(model, in_onnxruntime(model, tmp_path), [3, 4], 5)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"encoder.onnx", "encoder.onnx.data", "step.onnx", "step.onnx.data"}


def test_what_is_tied_is_stored_once_and_nothing_else_is_stored(tmp_path):
    model = lively(ModelConfig(**SMALL), vocabularies=(5000, 5000))
    write_graphs(model, tmp_path, "0")
    table = 5000 * 16 * 4
    assert table < (tmp_path / "encoder.onnx").stat().st_size < 2 * table
    assert table < (tmp_path / "step.onnx").stat().st_size < 2 * table
