import pytest
import torch
from torch import nn

from heedful.training.optimizer import MixedPrecisionAdam


def adam_by_hand(weight, gradients, rates, beta1=0.9, beta2=0.98, epsilon=1e-9):
    """Kingma and Ba, algorithm 1, in double precision."""
    weight = weight.double()
    first, second = torch.zeros_like(weight), torch.zeros_like(weight)
    for t, (gradient, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
        first = beta1 * first + (1 - beta1) * gradient.double()
        second = beta2 * second + (1 - beta2) * gradient.double() ** 2
        step = (first / (1 - beta1**t)) / ((second / (1 - beta2**t)).sqrt() + epsilon)
        weight = weight - rate * step
    return weight


def test_steps_are_adams():
    torch.manual_seed(1)
    model = nn.Linear(4, 3, bias=False)
    start = model.weight.detach().clone()
    weights = MixedPrecisionAdam(model, "fp32")
    gradients, rates = [torch.randn(3, 4) for _ in range(5)], [0.1, 0.2, 0.05, 0.1, 0.3]
    for gradient, rate in zip(gradients, rates, strict=True):
        weights.gradients[0].add_(8 * gradient)
        weights.step(rate, 1 / 8)
    torch.testing.assert_close(
        model.weight.detach().double(), adam_by_hand(start, gradients, rates), atol=1e-5, rtol=1e-5
    )


def test_micro_batches_add_up_to_the_whole_batch():
    torch.manual_seed(1)
    x, y = torch.randn(8, 4), torch.randn(8, 3)
    results = []
    for parts in (1, 4):
        torch.manual_seed(2)
        model = nn.Linear(4, 3)
        weights = MixedPrecisionAdam(model, "fp32")
        for rows in range(0, 8, 8 // parts):
            part = slice(rows, rows + 8 // parts)
            (model(x[part]) - y[part]).square().sum().backward()
            weights.accumulate_gradients()
        weights.step(0.1, 1 / 8)
        results.append(model.weight.detach().clone())
    torch.testing.assert_close(*results)


def test_bf16_computes_with_rounded_copies_and_keeps_fp32_masters():
    torch.manual_seed(1)
    model = nn.Linear(64, 64)
    exact = model.weight.detach().clone()
    weights = MixedPrecisionAdam(model, "bf16")
    assert model.weight.dtype == torch.bfloat16
    torch.testing.assert_close(weights.weights()["weight"], exact, rtol=0, atol=0)
    for _ in range(3):
        model(torch.ones(1, 64, dtype=torch.bfloat16)).sum().backward()
        weights.accumulate_gradients()
        assert model.weight.grad is None
    assert weights.gradients[0].dtype == torch.float32
    weights.step(1e-6, 1.0)
    master = weights.weights()["weight"]
    # a change too small for bf16 is not lost
    assert (master - exact).abs().min() > 5e-7
    torch.testing.assert_close(model.weight.detach(), master.bfloat16(), rtol=0, atol=0)


@pytest.mark.parametrize("ema_decay", [None, 0.9])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_reloaded_state_continues_bit_for_bit(precision, ema_decay):
    def make():
        torch.manual_seed(1)
        model = nn.Linear(6, 5)
        return model, MixedPrecisionAdam(model, precision, ema_decay=ema_decay)

    def advance(model, weights, steps):
        for step in steps:
            generator = torch.Generator().manual_seed(step)
            x = torch.randn(7, 6, generator=generator).to(model.weight.dtype)
            model(x).square().sum().backward()
            weights.accumulate_gradients()
            weights.step(0.01, 1 / 7)

    model, weights = make()
    advance(model, weights, range(6))
    interrupted, half = make()
    advance(interrupted, half, range(3))
    saved = {n: t.clone() for n, t in half.weights().items()}
    moments = {n: t.clone() for n, t in half.moments().items()}
    resumed, rest = make()
    rest.load(saved, moments, 3)
    advance(resumed, rest, range(3, 6))
    for name, tensor in weights.weights().items():
        assert torch.equal(tensor, rest.weights()[name])
    for name, tensor in weights.moments().items():
        assert torch.equal(tensor, rest.moments()[name])


def test_tied_weights_are_one():
    model = nn.ModuleList([nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)])
    model[1].weight = model[0].weight
    assert list(MixedPrecisionAdam(model, "fp32").weights()) == ["0.weight"]


def test_the_gradient_norm_shows_what_is_not_finite():
    model = nn.Linear(2, 2)
    weights = MixedPrecisionAdam(model, "fp32")
    weights.gradients[0].add_(3.0)
    assert weights.gradient_norm() == pytest.approx(6.0)
    weights.gradients[1][0] = float("nan")
    assert weights.gradient_norm() != weights.gradient_norm()
    weights.zero_grad()
    assert weights.gradient_norm() == 0.0


def test_decay_pulls_weights_towards_zero():
    model = nn.Linear(2, 2)
    before = model.weight.detach().clone()
    MixedPrecisionAdam(model, "fp32", weight_decay=0.5).step(0.1, 1.0)
    torch.testing.assert_close(model.weight.detach(), before * (1 - 0.05))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_moving_average_is_the_one_in_the_books_and_is_what_is_used(precision):
    torch.manual_seed(1)
    model = nn.Linear(4, 3, bias=False)
    plain = nn.Linear(4, 3, bias=False)
    plain.load_state_dict(model.state_dict())
    averaged = MixedPrecisionAdam(model, precision, ema_decay=0.6)
    masters = MixedPrecisionAdam(plain, precision)
    expected = plain.weight.detach().double()
    for step in range(1, 41):
        gradient = torch.randn(3, 4)
        for weights in (averaged, masters):
            weights.gradients[0].add_(gradient)
            weights.step(0.1, 1.0)
        decay = min(0.6, step / (step + 9))
        expected = decay * expected + (1 - decay) * masters.weights()["weight"].double()
    kept = averaged.weights()["weight"]
    torch.testing.assert_close(kept.double(), expected, atol=1e-5, rtol=1e-5)
    assert torch.equal(averaged.moments()["master.weight"], masters.weights()["weight"])
    assert (kept - averaged.moments()["master.weight"]).abs().max() > 0.01

    trained, used = model.weight.detach().clone(), averaged.weights()["weight"].clone()
    with averaged.averaged_weights():
        assert torch.equal(model.weight.detach(), used.to(model.weight.dtype))
    assert torch.equal(model.weight.detach(), trained)
    assert torch.equal(averaged.weights()["weight"], used)
