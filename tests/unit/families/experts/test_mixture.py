from dataclasses import replace

import pytest
import torch

from heedful.families.experts.mixture import (
    MixtureConfig,
    MixtureOfExperts,
    sum_by_token,
)
from heedful.model.feed_forward import FeedForward, apply_network

CONFIG = MixtureConfig(d_model=6, d_ff=8, experts=4, per_token=2)
GATINGS = [
    CONFIG,
    replace(CONFIG, gating="balanced"),
    replace(CONFIG, experts=6, groups=3),
    replace(CONFIG, experts=6, groups=3, gating="balanced"),
    replace(CONFIG, sigmoid=True),
]


def mixture(config=CONFIG, seed=0):
    """Build a mixture with drawn weights, in evaluation mode."""
    found = MixtureOfExperts(config).eval()
    generator = torch.Generator().manual_seed(seed)
    for weight in found.parameters():
        weight.data.normal_(std=0.5, generator=generator)
    for name, weight in found.named_parameters():
        if name.endswith("threshold"):
            weight.data.fill_(0.3)
    return found


def states(*shape, seed=1):
    return torch.randn(*shape, 6, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("config", GATINGS)
def test_a_token_is_the_weighted_sum_of_its_experts(config):
    network, x = mixture(config), states(3, 5)
    out = network(x).flatten(0, 1)
    routing = network.gate(x.flatten(0, 1))
    for token, state in enumerate(x.flatten(0, 1)):
        wanted = torch.zeros(6)
        for place in (routing.tokens == token).nonzero().flatten():
            expert = network.experts[int(routing.experts[place])]
            wanted += routing.gates[place] * expert(state)
        wanted = wanted.sigmoid() if config.sigmoid else wanted
        torch.testing.assert_close(out[token], wanted)


@pytest.mark.parametrize(("sigmoid", "value"), [(False, 0.0), (True, 0.5)])
def test_a_token_that_no_expert_takes_adds_nothing_or_with_a_sigmoid_a_half(sigmoid, value):
    network = mixture(replace(CONFIG, gating="balanced", sigmoid=sigmoid))
    network.gate.threshold.data.fill_(1.0)  # no share is larger
    torch.testing.assert_close(network(states(3)), torch.full((3, 6), value))


def test_all_experts_without_noise_are_the_dense_mixture():
    network, x = mixture(replace(CONFIG, per_token=4)), states(7)
    gates = (x @ network.gate.weight.T).softmax(dim=1)
    each = torch.stack([expert(x) for expert in network.experts], dim=1)  # (tokens, experts, 6)
    torch.testing.assert_close(network(x), (gates.unsqueeze(2) * each).sum(dim=1))


def test_one_expert_is_the_plain_network():
    network, x = mixture(replace(CONFIG, experts=1, per_token=1)).train(), states(7)
    plain = FeedForward(6, 8, bias=False)
    plain.load_state_dict(network.experts[0].state_dict())
    torch.testing.assert_close(network(x), plain(x))
    assert float(network.penalty.detach()) == pytest.approx(0)


@pytest.mark.parametrize("config", GATINGS)
def test_gradients_are_those_of_the_plain_sum(config):
    network, x = mixture(config).double(), states(9).double().requires_grad_()
    weights = torch.randn(9, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    (network(x) * weights).sum().backward()
    found = [x.grad, *(weight.grad for weight in network.parameters())]

    again = mixture(config).double()
    y = states(9).double().requires_grad_()
    routing = again.gate(y)
    out = torch.zeros(9, 6, dtype=torch.float64)
    for place in range(len(routing.tokens)):
        row = again.experts[int(routing.experts[place])](y[routing.tokens[place]])
        out = out.index_add(
            0, routing.tokens[place : place + 1], (routing.gates[place] * row)[None]
        )
    out = out.sigmoid() if config.sigmoid else out
    (out * weights).sum().backward()
    for one, other in zip(found, [y.grad, *(w.grad for w in again.parameters())], strict=True):
        if one is None or other is None:  # an expert without a token, a threshold, the noise
            assert one is None and other is None
        else:
            torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-6)  # gates are in fp32


@pytest.mark.parametrize("config", GATINGS)
def test_what_a_token_gets_does_not_depend_on_the_others(config):
    network, x = mixture(config), states(4, 5)
    whole = network(x)
    for row in range(4):
        torch.testing.assert_close(network(x[row : row + 1])[0], whole[row])


@pytest.mark.parametrize("config", GATINGS)
def test_padding_takes_no_expert(config):
    network, x = mixture(config).train(), states(2, 5)
    real = torch.tensor([[True] * 5, [True, True, False, False, False]])
    torch.manual_seed(0)
    out = network(x, real)
    penalty = network.penalty
    torch.manual_seed(0)
    alone = network(x[real])
    torch.testing.assert_close(out[real], alone)
    torch.testing.assert_close(penalty, network.penalty)
    assert out[~real].abs().max() == 0
    assert apply_network(network.eval(), x, real)[~real].abs().max() == 0


def test_every_expert_has_a_gradient_in_training():
    network = mixture().train()
    network.gate.weight.data.zero_()
    network.gate.weight.data[:2] = 100.0
    network.gate.noise_weight.data.fill_(-100.0)
    network(states(5).abs() + 1).sum().backward()
    for number, expert in enumerate(network.experts):
        assert (expert.linear1.weight.grad.abs().max() > 0) == (number < 2)


def test_the_running_load_follows_the_batches():
    network = mixture().train()
    assert network.running_load.tolist() == [0.5] * 4
    torch.manual_seed(0)
    network(states(50))
    torch.manual_seed(0)
    counts = torch.bincount(network.gate(states(50)).experts, minlength=4) / 50
    torch.testing.assert_close(network.running_load, 0.99 * 0.5 + 0.01 * counts)
    before = network.running_load.clone()
    network.eval()(states(50))
    assert torch.equal(network.running_load, before)


def test_tokens_that_no_expert_takes_are_counted():
    network = mixture(replace(CONFIG, gating="balanced", per_token=1)).train()
    out = network(states(40))
    empty = int((out.abs().amax(dim=1) == 0).sum())
    assert empty > 0
    assert network.unserved == pytest.approx(empty / 40)


def test_sums_by_token():
    values = torch.arange(8.0).view(4, 2)
    found = sum_by_token(values, torch.tensor([2, 0, 2, 3]), 5)
    assert found.tolist() == [[2, 3], [0, 0], [4, 6], [6, 7], [0, 0]]
    assert sum_by_token(values[:0], torch.tensor([], dtype=torch.long), 2).tolist() == [[0, 0]] * 2


@pytest.mark.parametrize("config", GATINGS)
def test_operations_are_those_of_the_experts_and_their_gates(config):
    network = mixture(config).eval()
    per_token = network.experts_per_token
    gates = 4 * 6
    if config.groups is not None:
        gates = 3 * 6 + 2 * 2 * 6  # groups, and two experts in each of two groups
    assert network.flops(12) == 12 * 2 * (per_token * 2 * 6 * 8 + gates)
    noisy = 1 + (config.gating == "noisy")  # in training the noise has weights, too
    assert network.train().flops(12) == 12 * 2 * (per_token * 2 * 6 * 8 + noisy * gates)
