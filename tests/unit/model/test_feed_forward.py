import pytest
import torch

from heedful.model.feed_forward import FeedForward


def test_the_feed_forward_network_is_equation_2():
    network = FeedForward(4, 8)
    x = torch.randn(3, 4)
    first, second = network.linear1, network.linear2
    inner = (x @ first.weight.T + first.bias).clamp(min=0)
    torch.testing.assert_close(network(x), inner @ second.weight.T + second.bias)


@pytest.mark.parametrize("name", ["gelu", "silu"])
def test_other_activations_differ_from_relu(name):
    torch.manual_seed(1)
    network, other = FeedForward(4, 8), FeedForward(4, 8, name)
    other.load_state_dict(network.state_dict())
    x = torch.randn(3, 4)
    assert not torch.allclose(network(x), other(x))
