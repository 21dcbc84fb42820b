import pytest
import torch

from heedful.model.feed_forward import ACTIVATIONS, FeedForward


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


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", ["relu", "gelu_tanh"])
def test_a_gate_is_the_activation_of_one_product(name, bias):
    network = FeedForward(4, 8, name, bias=bias, gated=True)
    x = torch.randn(3, 4)
    w, v = network.linear1.weight.chunk(2)
    b, c = network.linear1.bias.chunk(2) if bias else (torch.zeros(8), torch.zeros(8))
    inner = ACTIVATIONS[name](x @ w.T + b) * (x @ v.T + c)
    wanted = inner @ network.linear2.weight.T
    wanted = wanted + network.linear2.bias if bias else wanted
    torch.testing.assert_close(network(x), wanted)
    assert network.flops(2) == 2 * 2 * 3 * 4 * 8
