"""A network of one's own in the place of the feed-forward networks."""

import pytest
import torch
from torch import nn

from heedful.model.feed_forward import FeedForward, apply_network
from heedful.model.layer_config import LayerConfig
from heedful.model.layers import Decoder, Encoder
from heedful.model.parts import Network, Networks

REAL = torch.tensor([[True] * 4, [True, True, False, False]])


class Scale(Network):
    """A factor for each feature; counts the tokens that it has seen."""

    def __init__(self, width):
        super().__init__()
        self.factors = nn.Parameter(torch.full((width,), 2.0))
        self.tokens = 0

    def forward(self, x, real=None):
        self.tokens += x.size(0) * x.size(1) if real is None else int(real.sum())
        self.penalty = self.factors.sum()
        return x * self.factors

    def flops(self, tokens):
        return tokens

    @classmethod
    def log_figures(cls, networks):
        return {"tokens": sum(network.tokens for network in networks)}


CONFIG = LayerConfig(8, 16, 2, dropout=0.0, networks=Networks(Scale, (2,)))


@pytest.mark.parametrize("stack", [Encoder, Decoder])
def test_the_layers_that_are_named_have_it(stack):
    kinds = [type(layer.feed_forward) for layer in stack(CONFIG, 3).layers]
    assert kinds == [FeedForward, Scale, FeedForward]
    assert [
        network.factors.shape
        for network in stack(CONFIG, 3).modules()
        if isinstance(network, Network)
    ] == [(8,)]


def test_it_learns_which_positions_are_real():
    encoder, x = Encoder(CONFIG, 2), torch.randn(2, 4, 8)
    encoder(x, REAL[:, None, None])
    (network,) = (part for part in encoder.modules() if isinstance(part, Network))
    assert network.tokens == 6
    network = Scale(8)
    assert apply_network(network, x, REAL).equal(2 * x)
    assert network.tokens == 6
    assert apply_network(nn.ReLU(), x, REAL).equal(x.relu())


def test_a_network_of_the_contract_alone_has_no_figures():
    class Plain(Scale):
        log_figures = Network.log_figures

    assert Plain.log_figures([Plain(8)]) == {}
    assert Plain(8).penalty is None
