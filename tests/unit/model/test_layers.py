"""Layers and stacks called by hand, with bare masks or none."""

import pytest
import torch

from heedful.model.layer_config import LayerConfig
from heedful.model.layers import Decoder, DecoderLayer, Encoder, EncoderLayer
from heedful.model.layout import Layout

CONFIG = LayerConfig(d_model=16, d_ff=32, heads=4, dropout=0.0)
X, MEMORY = torch.randn(2, 5, 16), torch.randn(2, 7, 16)


def everywhere(keys):
    return torch.ones(2, 1, 1, keys, dtype=torch.bool)


@pytest.mark.parametrize("recorded", [False, True])
def test_stacks_attend_everywhere_without_a_mask(recorded):
    encoder, decoder = Encoder(CONFIG, 2), Decoder(CONFIG, 2)
    weights = ([], []) if recorded else None
    of_encoder = [] if recorded else None
    torch.testing.assert_close(encoder(X, None, of_encoder), encoder(X, everywhere(5)))
    masked = decoder(X, MEMORY, everywhere(7))
    torch.testing.assert_close(decoder(X, MEMORY, weights=weights), masked)


def test_layers_take_a_layout_a_bare_mask_or_nothing():
    layer = EncoderLayer(CONFIG)
    masked = layer(X, Layout(everywhere(5)))
    assert torch.equal(layer(X, everywhere(5)), masked)
    torch.testing.assert_close(layer(X), masked)
    decoder_layer = DecoderLayer(CONFIG)
    masked = decoder_layer(X, MEMORY, Layout(everywhere(5)), Layout(everywhere(7)))
    torch.testing.assert_close(decoder_layer(X, MEMORY, None, None), masked)
