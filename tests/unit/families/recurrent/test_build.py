"""Recurrent encoders and decoders from settings."""

import pytest

from heedful.config.model import ModelConfig
from heedful.families.recurrent.build import build_decoder, build_encoder
from heedful.families.recurrent.config import RecurrentConfig


@pytest.mark.parametrize(
    ("direction", "layers", "states", "first"),
    [
        ("forward", 2, 8, 8),
        ("bidirectional", 2, 16, 16),
        ("first-bidirectional", 1, 16, 16),
        ("first-bidirectional", 2, 8, 8),
        ("interleaved", 2, 16, 16),
    ],
)
def test_a_decoder_fits_its_encoder(direction, layers, states, first):
    recurrent = RecurrentConfig(direction=direction, encoder_hidden_size=8, hidden_size=12)
    config = ModelConfig(
        encoder="recurrent",
        decoder="recurrent",
        encoder_layers=layers,
        d_model=12,
        recurrent=recurrent,
    )
    encoder = build_encoder(config)
    decoder = build_decoder(config, encoder)
    assert encoder.width == decoder.wiring.memory_width == states
    assert decoder.start_proj.in_features == first
    assert decoder.width == 12


def test_the_maps_that_papers_write_without_biases_have_them():
    # docs/explain/recurrent.md says so
    choices = {"readout": "maxout", "start": "backward", "hidden_size": 12}
    config = ModelConfig(
        encoder="recurrent", decoder="recurrent", d_model=12, recurrent=RecurrentConfig(**choices)
    )
    decoder = build_decoder(config, build_encoder(config))
    assert decoder.start_proj.bias.shape == (12,)
    assert decoder.readout.bias.shape == (24,)  # pairs
    deep = RecurrentConfig(direction="interleaved", fast_forward=True, hidden_size=8)
    encoder = build_encoder(config.model_copy(update={"recurrent": deep}))
    assert encoder.memory_proj.bias.shape == (encoder.width,)


def test_a_dropout_of_zero_is_a_value():
    recurrent = RecurrentConfig(embedding_dropout=0.0)
    config = ModelConfig(encoder="recurrent", decoder="recurrent", dropout=0.3, recurrent=recurrent)
    wiring = build_encoder(config).wiring
    assert (wiring.embedding_dropout, wiring.layer_dropout) == (0.0, 0.3)
