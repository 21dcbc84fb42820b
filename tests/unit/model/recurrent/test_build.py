"""Recurrent encoders and decoders from settings."""

import pytest

from heedful.config.model import ModelConfig
from heedful.config.recurrent import RecurrentConfig
from heedful.model.recurrent.build import recurrent_decoder, recurrent_encoder


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
    encoder = recurrent_encoder(config)
    decoder = recurrent_decoder(config, encoder)
    assert encoder.width == decoder.wiring.memory_width == states
    assert decoder.start_proj.in_features == first
    assert decoder.width == 12


def test_a_dropout_of_zero_is_a_value():
    recurrent = RecurrentConfig(embedding_dropout=0.0)
    config = ModelConfig(encoder="recurrent", decoder="recurrent", dropout=0.3, recurrent=recurrent)
    wiring = recurrent_encoder(config).wiring
    assert (wiring.embedding_dropout, wiring.layer_dropout) == (0.0, 0.3)
