import math

import pytest
import torch

from heedful.families.experts.gating import (
    BalancedGate,
    GroupedGate,
    NoisyGate,
    chance_of_choice,
    squared_variation,
)

WIDTH, EXPERTS, TOKENS = 6, 5, 40


def drawn(gate, seed=0):
    """Draw all weights of a gate."""
    generator = torch.Generator().manual_seed(seed)
    for weight in gate.parameters():
        weight.data.normal_(generator=generator)
    return gate


def grouped(kind, *losses):
    """Four groups of three experts."""
    return GroupedGate(kind(WIDTH, 4, 2, *losses), [kind(WIDTH, 3, 2, *losses) for _ in range(4)])


def tokens(seed=1, count=TOKENS):
    return torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(seed))


def test_without_noise_the_k_largest_are_weighed_by_a_softmax_over_those():
    gate, x = drawn(NoisyGate(WIDTH, EXPERTS, 2)).eval(), tokens()
    routing = gate(x)
    logits = (x @ gate.weight.T).detach()
    for token in range(TOKENS):
        mine = routing.tokens == token
        best = sorted(range(EXPERTS), key=lambda e: -float(logits[token, e]))[:2]
        assert routing.experts[mine].tolist() == best
        wanted = logits[token, best].softmax(dim=0)
        torch.testing.assert_close(routing.gates[mine], wanted)
    assert routing.penalty is None


def test_a_gate_is_without_preference_at_first():
    gate = NoisyGate(WIDTH, EXPERTS, 2).train()
    torch.manual_seed(0)
    counts = torch.bincount(gate(tokens(count=20_000)).experts, minlength=EXPERTS) / 20_000
    torch.testing.assert_close(counts, torch.full((EXPERTS,), 0.4), atol=0.02, rtol=0)


def test_the_expected_load_is_the_frequency_under_fresh_noise():
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(4, EXPERTS, generator=generator)
    deviation = torch.rand(4, EXPERTS, generator=generator) + 0.3
    noisy = logits + deviation * torch.randn(4, EXPERTS, generator=generator)
    chance = chance_of_choice(logits, noisy, deviation, 2)
    draws = 40_000
    for expert in range(EXPERTS):
        fresh = noisy.repeat(draws, 1, 1)
        noise = torch.randn(draws, 4, generator=generator)
        fresh[:, :, expert] = logits[:, expert] + deviation[:, expert] * noise
        is_chosen = (fresh.topk(2, dim=2).indices == expert).any(dim=2)  # (draws, tokens)
        torch.testing.assert_close(
            chance[:, expert], is_chosen.float().mean(dim=0), atol=0.012, rtol=0
        )


def test_the_penalty_is_that_of_importance_and_load():
    gate, x = drawn(NoisyGate(WIDTH, EXPERTS, 2, 0.3, 0.7)).train(), tokens()
    torch.manual_seed(5)
    routing = gate(x)
    importance = torch.zeros(EXPERTS).index_add(0, routing.experts, routing.gates.detach())
    load = routing.load
    wanted = 0.3 * squared_variation(importance) + 0.7 * squared_variation(load)
    torch.testing.assert_close(routing.penalty, wanted)
    values = importance.tolist()
    mean = sum(values) / EXPERTS
    variance = sum((value - mean) ** 2 for value in values) / EXPERTS
    assert float(squared_variation(importance)) == pytest.approx(variance / mean**2, rel=1e-5)


def test_the_loss_reaches_the_gate_only_where_two_experts_share_a_token():
    x = tokens()
    for k, reaches in ((1, False), (2, True)):
        gate = drawn(NoisyGate(WIDTH, EXPERTS, k)).train()
        routing = gate(x)
        (routing.gates * torch.arange(len(routing.gates))).sum().backward()
        assert bool(gate.weight.grad.abs().sum() > 1e-6) == reaches


def test_the_load_alone_reaches_the_noise():
    gate = drawn(NoisyGate(WIDTH, EXPERTS, 2, 0.0, 1.0)).train()
    gate(tokens()).penalty.backward()
    assert gate.noise_weight.grad.abs().sum() > 0


def test_groups_multiply_the_gates_of_both_levels():
    gate, x = drawn(grouped(NoisyGate)).eval(), tokens()
    routing = gate(x)
    first = (x @ gate.primary.weight.T).topk(2, dim=1)
    for token in range(TOKENS):
        wanted = {}
        outer = first.values[token].softmax(dim=0)
        for group, weight in zip(first.indices[token].tolist(), outer.tolist(), strict=True):
            best = (x[token] @ gate.secondary[group].weight.T).topk(2)
            inner = best.values.softmax(dim=0).tolist()
            for expert, share in zip(best.indices.tolist(), inner, strict=True):
                wanted[3 * group + expert] = weight * share
        mine = routing.tokens == token
        found = dict(zip(routing.experts[mine].tolist(), routing.gates[mine].tolist(), strict=True))
        assert found == pytest.approx(wanted, rel=1e-5)


def test_groups_balance_the_products_of_both_levels():
    gate, x = drawn(grouped(NoisyGate, 0.5, 0.25)).train(), tokens()
    torch.manual_seed(2)
    routing = gate(x)
    torch.manual_seed(2)
    first = gate.primary(x)
    loads = []
    for group, second in enumerate(gate.secondary):
        rows = first.tokens[first.experts == group]
        loads.append(first.load[group] * second(x[rows]).load / len(rows))
    importance = torch.zeros(12).index_add(0, routing.experts, routing.gates)
    wanted = 0.5 * squared_variation(importance) + 0.25 * squared_variation(torch.cat(loads))
    torch.testing.assert_close(routing.penalty, wanted)


def test_groups_take_equal_shares_of_a_batch_and_their_experts_of_the_group():
    gate, x = drawn(grouped(BalancedGate)).train(), tokens(count=36)
    routing = gate(x)
    assert torch.bincount(routing.experts).tolist() == [12] * 12  # of 18 tokens of a group
    first = gate.primary(x)
    wanted = first.penalty
    for group, second in enumerate(gate.secondary):
        rows = first.tokens[first.experts == group]
        assert len(rows) == 18
        wanted = wanted + second(x[rows]).penalty / 2
    torch.testing.assert_close(routing.penalty, wanted)
    assert gate(x[:0]).penalty == 0


def test_each_expert_takes_its_share_of_a_batch():
    gate, x = drawn(BalancedGate(WIDTH, EXPERTS, 2)).train(), tokens()
    routing = gate(x)
    each = 2 * TOKENS // EXPERTS
    assert torch.bincount(routing.experts).tolist() == [each] * EXPERTS
    shares = (x @ gate.weight.T).softmax(dim=1)
    for expert in range(EXPERTS):
        best = set(shares[:, expert].topk(each).indices.tolist())
        assert set(routing.tokens[routing.experts == expert].tolist()) == best
    sums = torch.zeros(TOKENS).index_add(0, routing.tokens, routing.gates)
    served = torch.bincount(routing.tokens, minlength=TOKENS) > 0
    torch.testing.assert_close(sums, served.float())


def test_thresholds_learn_the_shares_of_a_batch():
    gate, x = drawn(BalancedGate(WIDTH, EXPERTS, 2)).train(), tokens(count=400)
    gate.threshold.data.zero_()
    optimizer = torch.optim.SGD([gate.threshold], lr=0.02)
    for _ in range(400):
        optimizer.zero_grad()
        gate(x).penalty.backward()
        optimizer.step()
    wanted = gate(x)
    found = gate.eval()(x)
    pairs = [set(zip(r.tokens.tolist(), r.experts.tolist(), strict=True)) for r in (wanted, found)]
    assert len(pairs[0] ^ pairs[1]) < 0.05 * len(pairs[0])


def test_a_threshold_is_pulled_by_the_difference_of_the_masks():
    gate = BalancedGate(1, 2, 1).train()
    gate.weight.data[:] = torch.tensor([[1.0], [0.0]])
    gate.threshold.data[:] = torch.tensor([0.6, 0.0])
    x = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
    gate(x).penalty.backward()
    # of expert 0 the shares are 0.5, 0.73, 0.88, 0.95: three above 0.6, two of the batch
    # of expert 1 all four are above 0, and two are of the batch
    assert gate.threshold.grad.tolist() == pytest.approx([-1 / 4, -2 / 4])
    assert gate.weight.grad is None


def test_variation_is_that_of_the_whole():
    assert float(squared_variation(torch.tensor([1.0, 3.0]))) == pytest.approx(0.25)
    assert float(squared_variation(torch.full((4,), math.pi))) == pytest.approx(0)
