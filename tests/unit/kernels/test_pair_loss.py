"""The loss of two passes: its definition by autograd, and the same in chunks in closed form."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.kernels import loss as losses
from heedful.kernels.loss import SMOOTHING_FORMS, plain_loss
from heedful.kernels.pair_loss import PairFactors, chunked_pair_loss, plain_pair_loss

SIMCUT = PairFactors(1.0, 0.0, 3.0, 0.0)
RDROP = PairFactors(0.5, 0.5, 1.25, 1.25)
UNEVEN = PairFactors(0.7, 0.2, 0.3, 1.9)
BOTH = (plain_pair_loss, chunked_pair_loss)


def leaves_of(rows, classes, with_bias, scale=1.0):
    made = [scale * torch.randn(rows, 8), scale * torch.randn(rows, 8), torch.randn(classes, 8)]
    made += [torch.randn(classes)] if with_bias else []
    return [leaf.requires_grad_() for leaf in made]


@pytest.mark.parametrize("function", BOTH)
def test_it_is_as_computed_by_hand(function):
    # p is (1/2, 1/2) and q is (3/4, 1/4); the right class is the second
    table, target = torch.eye(2), torch.tensor([1])
    first, second = torch.zeros(1, 2), torch.tensor([[math.log(3.0), 0.0]])
    forward = 0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)
    backward = 0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5)
    found = function(first, second, target, table, None, SIMCUT, 0.0)
    assert float(found.loss) == pytest.approx(math.log(2.0) + 3.0 * forward, abs=1e-6)
    assert float(found.nll) == pytest.approx(math.log(2.0), abs=1e-6)
    assert float(found.divergence) == pytest.approx(forward, abs=1e-6)
    found = function(first, second, target, table, None, RDROP, 0.0)
    nll = (math.log(2.0) + math.log(4.0)) / 2
    assert float(found.loss) == pytest.approx(nll + 1.25 * (forward + backward), abs=1e-6)
    assert float(found.nll) == pytest.approx(nll, abs=1e-6)
    assert float(found.divergence) == pytest.approx((forward + backward) / 2, abs=1e-6)


@pytest.mark.parametrize("function", BOTH)
def test_two_equal_passes_have_the_loss_and_gradient_of_one(function):
    torch.manual_seed(1)
    states, table = torch.randn(9, 8), torch.randn(20, 8)
    targets = torch.randint(20, (9,))
    halves = [states.clone().requires_grad_() for _ in range(2)]
    found = function(*halves, targets, table, None, RDROP)
    alone = states.clone().requires_grad_()
    loss, nll = plain_loss(alone, targets, table)
    torch.testing.assert_close((found.loss, found.nll), (loss, nll))
    assert float(found.divergence) == pytest.approx(0.0, abs=1e-5)
    first, second = torch.autograd.grad(found.loss, halves)
    (expected,) = torch.autograd.grad(loss, alone)
    torch.testing.assert_close(first, second)
    torch.testing.assert_close(first + second, expected)


@given(
    rows=st.integers(1, 300),
    classes=st.integers(2, 400),
    smoothing=st.sampled_from([0.0, 0.1, 0.3]),
    form=st.sampled_from(SMOOTHING_FORMS),
    factors=st.sampled_from([SIMCUT, RDROP, UNEVEN]),
    with_bias=st.booleans(),
    seed=st.integers(0, 99),
)
def test_chunks_give_the_sums_and_gradients_of_the_definition(
    rows, classes, smoothing, form, factors, with_bias, seed
):
    torch.manual_seed(seed)
    leaves = leaves_of(rows, classes, with_bias)
    first, second, table, bias = (*leaves, None)[:4]
    targets = torch.randint(classes, (rows,))
    results = []
    for function in BOTH:
        found = function(first, second, targets, table, bias, factors, smoothing, form)
        assert not found.nll.requires_grad and not found.divergence.requires_grad
        gradients = torch.autograd.grad(found.loss / 3, leaves)
        results.append((*(part.detach() for part in found), *gradients))
    for ours, theirs in zip(*results, strict=True):
        scale = float(theirs.abs().max())
        torch.testing.assert_close(ours, theirs, atol=2e-5 * scale + 1e-5, rtol=2e-5)


@pytest.mark.parametrize("factors", [SIMCUT, RDROP, UNEVEN])
def test_its_gradient_is_that_of_finite_differences(factors):
    torch.manual_seed(2)
    leaves = [leaf.detach().double() for leaf in leaves_of(5, 7, True, 0.5)]
    targets = torch.randint(7, (5,))

    def loss(parts):
        first, second, table, bias = parts
        logs = [torch.log_softmax(states @ table.T + bias, 1) for states in (first, second)]
        wanted = torch.full((5, 7), 0.1 / 7, dtype=torch.float64)
        wanted[torch.arange(5), targets] += 0.9
        entropies = [-(wanted * log).sum() for log in logs]
        apart = [(a.exp() * (a - b)).sum() for a, b in (logs, logs[::-1])]
        return sum(f * part for f, part in zip(factors, (*entropies, *apart), strict=True))

    inputs = [leaf.float().requires_grad_() for leaf in leaves]
    found = chunked_pair_loss(*inputs[:2], targets, *inputs[2:], factors)
    assert found.loss.item() == pytest.approx(float(loss(leaves)), rel=1e-5)
    for place, gradient in enumerate(torch.autograd.grad(found.loss, inputs)):
        direction = torch.randn_like(leaves[place])
        around = []
        for sign in (1.0, -1.0):
            moved = [*leaves]
            moved[place] = moved[place] + sign * 1e-5 * direction
            around.append(float(loss(moved)))
        slope = (around[0] - around[1]) / 2e-5
        assert float((gradient.double() * direction).sum()) == pytest.approx(slope, rel=1e-4)


@pytest.mark.parametrize("factors", [SIMCUT, RDROP])
def test_many_chunks_and_many_products_equal_one(factors, monkeypatch):
    torch.manual_seed(1)
    leaves = leaves_of(500, 50, True)
    targets = torch.randint(50, (500,))
    results = []
    for logits, rows in ((1 << 23, 2048), (50 * 64 * 4, 200)):
        monkeypatch.setattr(losses, "_CHUNK_LOGITS", logits)
        monkeypatch.setattr(losses, "_KEPT_ROWS", rows)
        found = chunked_pair_loss(*leaves[:2], targets, *leaves[2:], factors)
        results.append((found.loss, *torch.autograd.grad(found.loss, leaves)))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("factors", [SIMCUT, RDROP, UNEVEN])
def test_chunks_give_what_the_definition_gives_in_bf16(factors):
    torch.manual_seed(4)
    made = leaves_of(200, 90, True)
    leaves = [leaf.detach().bfloat16().requires_grad_() for leaf in made]
    targets = torch.randint(90, (200,))
    results = []
    for function in BOTH:
        found = function(*leaves[:2], targets, *leaves[2:], factors)
        results.append((found, torch.autograd.grad(found.loss, leaves)))
    (ours, mine), (theirs, expected) = results
    torch.testing.assert_close(tuple(ours), tuple(theirs), rtol=1e-5, atol=1e-3)
    for one, two in zip(mine, expected, strict=True):
        assert float((one - two).float().norm() / two.float().norm()) < 0.01


@pytest.mark.parametrize("factors", [SIMCUT, RDROP])
def test_bf16_stays_close_to_fp32_even_where_the_passes_are_near(factors):
    torch.manual_seed(1)
    first, table = torch.randn(600, 32) / 4, torch.randn(300, 32) / 4
    exact = [first, first + torch.randn(600, 32) / 16, table, torch.randn(300)]
    targets = torch.randint(300, (600,))
    results = []
    for dtype in (torch.float32, torch.bfloat16):
        # both from the same rounded numbers: what differs is the arithmetic alone
        leaves = [leaf.bfloat16().to(dtype).requires_grad_() for leaf in exact]
        found = chunked_pair_loss(*leaves[:2], targets, *leaves[2:], factors)
        assert found.loss.dtype == torch.float32
        results.append((found, torch.autograd.grad(found.loss, leaves)))
    (whole, gradients), (rounded, rounded_gradients) = results
    torch.testing.assert_close(rounded.loss, whole.loss, rtol=2e-3, atol=0)
    torch.testing.assert_close(rounded.divergence, whole.divergence, rtol=2e-2, atol=0)
    for ours, theirs in zip(gradients, rounded_gradients, strict=True):
        assert theirs.dtype == torch.bfloat16
        assert float((ours - theirs.float()).norm() / ours.norm()) < 0.04


def test_hopeless_targets_and_passes_far_apart_give_finite_numbers():
    states = [torch.tensor([[100.0]]).requires_grad_(), torch.tensor([[-100.0]]).requires_grad_()]
    table = torch.tensor([[10.0], [-10.0]])
    for factors in (SIMCUT, RDROP):
        found = chunked_pair_loss(*states, torch.tensor([1]), table, None, factors, 0.0)
        gradients = torch.autograd.grad(found.loss, states)
        assert all(math.isfinite(part.item()) for part in (*found, *gradients))
