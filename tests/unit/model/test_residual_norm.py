"""Norms by name, and one of one's own."""

import torch
from torch import nn

from heedful.model.layer_config import LayerConfig
from heedful.model.layers import Decoder, Encoder
from heedful.model.parts import PaddedNorm
from heedful.model.residual import ScaledNorm, make_norm, normalize

REAL = torch.tensor([[True] * 5, [True] * 3 + [False] * 2, [True] + [False] * 4])


class Centered(nn.Module, PaddedNorm):
    """Subtracts the mean of all real positions."""

    def __init__(self, width, epsilon):
        super().__init__()
        self.width, self.epsilon = width, epsilon

    def forward(self, x, real=None):
        tokens = x.flatten(0, 1) if real is None else x[real]
        return x - tokens.mean(0)


def test_norms_are_made_by_name_or_by_a_function():
    assert type(make_norm("layer", 4, 1e-6)) is nn.LayerNorm
    assert type(make_norm("none", 4, 1e-6)) is nn.Identity
    x = torch.randn(3, 5, 4)
    assert normalize(make_norm("none", 4, 1e-6), x, REAL) is x
    norm = make_norm(Centered, 4, 1e-3)
    assert (norm.width, norm.epsilon) == (4, 1e-3)
    assert normalize(norm, x, REAL).equal(x - x[REAL].mean(0))


def test_a_norm_of_one_s_own_learns_which_positions_are_real():
    encoder = Encoder(LayerConfig(4, 8, 2, dropout=0.0, norm="pre", norm_kind=Centered), 1)
    x, changed = torch.randn(3, 5, 4), torch.randn(3, 5, 4)
    changed[REAL] = x[REAL]
    mask = REAL[:, None, None]
    torch.testing.assert_close(encoder(x, mask)[REAL], encoder(changed, mask)[REAL])


def test_a_decoder_s_last_norm_may_be_scaled():
    norm = ScaledNorm(Centered(4, 0.0), 0.5)
    x = torch.randn(3, 5, 4)
    assert normalize(norm, x, REAL).equal((x - x[REAL].mean(0)) * 0.5)
    for wiring in ("pre", "post"):
        config = LayerConfig(4, 8, 2, dropout=0.0, norm=wiring, scale_output=True)
        decoder = Decoder(config, 1)
        scaled = decoder(x, x)
        decoder.norm = decoder.norm.norm
        torch.testing.assert_close(scaled, decoder(x, x) / 2)
        assert not isinstance(Encoder(config, 1).norm, ScaledNorm)
