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


def test_a_mask_with_a_row_for_each_query_is_read_row_by_row():
    """Padding is removed by masks of keys alone: the first row of another says little."""
    encoder, decoder = Encoder(CONFIG, 2).eval(), Decoder(CONFIG, 2).eval()
    causal = torch.ones(5, 5, dtype=torch.bool).tril().expand(2, 1, 5, 5)
    found = encoder(X, causal)
    torch.testing.assert_close(encoder(X[:, :2], causal[..., :2, :2]), found[:, :2])
    assert not torch.allclose(found[:, 4], encoder(X, everywhere(5))[:, 0])
    recorded = encoder(X, causal, [])
    torch.testing.assert_close(found, recorded)
    windows = torch.eye(5, 7, dtype=torch.bool).expand(2, 1, 5, 7)
    real = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    apart = decoder(X, MEMORY, windows, real=real)
    torch.testing.assert_close(apart[0], decoder(X, MEMORY, windows, ([], []))[0])
    torch.testing.assert_close(apart[1, :3], decoder(X, MEMORY, windows, ([], []))[1, :3])


def test_a_mask_of_one_row_is_for_every_row():
    encoder, decoder = Encoder(CONFIG, 2).eval(), Decoder(CONFIG, 2).eval()
    real = torch.tensor([True] * 5 + [False] * 2)
    one, every = (real.expand(rows, 1, 1, 7) for rows in (1, 2))
    torch.testing.assert_close(encoder(MEMORY, one), encoder(MEMORY, every))
    torch.testing.assert_close(decoder(X, MEMORY, one), decoder(X, MEMORY, every))
