"""The weights of T5's class and its settings, beside a model in NumPy that reads the same files."""

import numpy as np
import pytest
import torch

from heedful.config.schema import RunConfig
from heedful.errors import ExchangeError
from heedful.exchange.formats import Problems
from heedful.exchange.t5.names import HEAD, SHARED, t5_map
from heedful.exchange.t5.settings import check_model, complete, config_of, model_settings
from heedful.families.build import build_model
from heedful.families.keymap import RowMap
from heedful.model.initialize import initialize
from tests.oracles.numpy_t5 import NumpyT5

pytestmark = pytest.mark.family("relative_buckets", "rms_norm")
SIZES = {
    "vocab_size": 12,
    "d_model": 8,
    "d_kv": 3,
    "d_ff": 10,
    "num_layers": 2,
    "num_decoder_layers": 1,
    "num_heads": 3,
    "relative_attention_num_buckets": 6,
    "relative_attention_max_distance": 7,
    "layer_norm_epsilon": 0.01,
}
# our ids 0 to 3 are their 0, 3, 11 and 1
ORIGINS = (0, 3, 11, 1, 2, *range(4, 11))
KINDS = {
    "1.0": {},
    "1.1": {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    "gelu, not scaled": {"feed_forward_proj": "gelu", "scale_decoder_outputs": False},
    "gated silu": {"feed_forward_proj": "gated-silu"},
}


def our_settings(theirs, tensors):
    """The settings that follow from a class's, by dotted names."""
    return {f"model.{name}": value for name, value in model_settings(theirs, tensors).items()}


def built(kind, own_head=False):
    """A model with random weights, its key map and its settings there and here."""
    settings = complete({**SIZES, **KINDS[kind]})
    head = {HEAD: torch.ones(1), SHARED: torch.zeros(1)} if own_head else {}
    config = RunConfig().with_settings(
        our_settings(settings, head) | {"model.decoder_start": "pad"}
    )
    model = build_model(config.model, 12, 12, max_length=20)
    initialize(model, 1)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return model.double().eval(), t5_map(config.model, RowMap(ORIGINS, 12)), config.model


@pytest.mark.parametrize("own_head", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_the_model_is_that_of_the_class(kind, own_head):
    model, key_map, config = built(kind, own_head)
    # in single precision, as files have them
    theirs = key_map.to_theirs({name: part.float() for name, part in model.named_parameters()})
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.float())
    assert (HEAD in theirs) == own_head
    arrays = {name: tensor.double().numpy() for name, tensor in theirs.items()}
    twin = NumpyT5(arrays, config_of(config) | {"vocab_size": 12})
    source, target = [4, 9, 5, 5, 6, 11, 8, 7, 4, 3], [0, 4, 10, 5, 9, 9, 4, 8, 6, 7, 5]
    with torch.no_grad():
        states = model.states(torch.tensor([source]), torch.tensor([target]))
        ours = torch.log_softmax(model.project(states), -1)[0].numpy()
    wanted = twin.log_probabilities([ORIGINS[n] for n in source], [ORIGINS[n] for n in target])
    np.testing.assert_allclose(ours, wanted[:, list(ORIGINS)], atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_come_back_as_they_went(kind):
    model, key_map, _ = built(kind, own_head=True)
    ours = {name: part.detach().float() for name, part in model.named_parameters()}
    theirs = key_map.to_theirs(ours)
    shapes = {name: tuple(part.shape) for name, part in ours.items()}
    again = key_map.to_ours(theirs, shapes, "there")
    assert again.keys() == ours.keys()
    assert all(again[name].equal(ours[name]) for name in ours)


def test_copies_of_the_tied_table_must_be_equal():
    model, key_map, _ = built("1.0")
    ours = {name: part.detach().float() for name, part in model.named_parameters()}
    shapes = {name: tuple(part.shape) for name, part in ours.items()}
    theirs = key_map.to_theirs(ours)
    copies = dict.fromkeys(("encoder.embed_tokens.weight", HEAD), theirs[SHARED])
    key_map.to_ours(theirs | copies, shapes, "there")
    with pytest.raises(ExchangeError, match="must be equal to shared"):
        key_map.to_ours(theirs | {"encoder.embed_tokens.weight": -theirs[SHARED]}, shapes, "there")


@pytest.mark.parametrize(
    ("said", "scaled"),
    [
        ({}, True),
        ({"tie_word_embeddings": True}, True),
        ({"tie_word_embeddings": False}, False),
        ({"tie_word_embeddings": True, "scale_decoder_outputs": False}, False),
        ({"tie_word_embeddings": False, "scale_decoder_outputs": True}, True),
        ({"model_type": "mt5"}, False),
    ],
)
def test_the_output_is_scaled_as_the_class_does(said, scaled):
    settings = our_settings(complete({**SIZES, **said}), {})
    assert settings["model.scale_output"] is scaled


def test_names_of_all_classes_stand_for_its_own():
    settings = complete({"hidden_size": 8, "num_hidden_layers": 3, "vocab_size": 9})
    assert (settings["d_model"], settings["num_layers"], settings["d_kv"]) == (8, 3, 64)
    assert settings["num_decoder_layers"] == 3
    assert complete({"num_layers": 2, "num_hidden_layers": 3})["num_layers"] == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model.norm": "post"}, "model.norm must be pre"),
        ({"model.norm_kind": "layer"}, "model.norm_kind must be rms"),
        ({"model.decoder_heads": 1}, "model.decoder_heads must be model.heads"),
        ({"model.d_v": 5}, "model.d_v must be model.d_k"),
        ({"model.tie_embeddings": "none"}, "model.tie_embeddings must be all or embeddings"),
        ({"model.attention.score": "scaled"}, "model.attention.score must be unscaled"),
        ({"model.feed_forward_bias": True}, "model.feed_forward_bias must be false, but is true"),
        ({"model.gated": True, "model.activation": "gelu"}, "a gated network must use"),
        ({"model.decoder_start": "zero"}, "model.decoder_start must be symbol, pad or end"),
    ],
    ids=str,
)
def test_a_model_that_is_not_of_the_class_is_named(changes, words):
    settings = our_settings(complete(SIZES), {})
    reasons = Problems()
    check_model(RunConfig().with_settings(settings).model, reasons)
    assert reasons.messages == []
    check_model(RunConfig().with_settings(settings | changes).model, reasons)
    assert any(words in message for message in reasons.messages), reasons.messages
