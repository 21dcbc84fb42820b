import pytest
import torch
from torch import nn

from heedful.config.train import TrainConfig
from heedful.model.weights import running_averages
from heedful.runs.checkpoint import load_checkpoint, save_checkpoint
from heedful.training.optimizer import MixedPrecisionOptimizer
from tests.support.models import batch, small


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
    weights = MixedPrecisionOptimizer(model, "fp32", TrainConfig())
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
        weights = MixedPrecisionOptimizer(model, "fp32", TrainConfig())
        for rows in range(0, 8, 8 // parts):
            part = slice(rows, rows + 8 // parts)
            (model(x[part]) - y[part]).square().sum().backward()
            weights.accumulate_gradients()
        weights.step(0.1, 1 / 8)
        results.append(model.weight.detach().clone())
    torch.testing.assert_close(*results)


def test_bf16_rounds_numbers_alone():
    model = nn.Linear(4, 4)
    model.register_buffer("numbers", torch.tensor([1.5]))
    model.register_buffer("mask", torch.tensor([True, False]))
    model.register_buffer("counts", torch.tensor([257]))
    MixedPrecisionOptimizer(model, "bf16", TrainConfig())
    kinds = [model.get_buffer(name).dtype for name in ("numbers", "mask", "counts")]
    assert kinds == [torch.bfloat16, torch.bool, torch.long]


def test_bf16_computes_with_rounded_copies_and_keeps_fp32_masters():
    torch.manual_seed(1)
    model = nn.Linear(64, 64)
    exact = model.weight.detach().clone()
    weights = MixedPrecisionOptimizer(model, "bf16", TrainConfig())
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


SGD = {"optimizer": "sgd"}
MOMENTUM = {**SGD, "momentum": 0.9}
NESTEROV = {**MOMENTUM, "nesterov": True}


@pytest.mark.parametrize("ema_decay", [None, 0.9])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("rule", [{}, SGD, NESTEROV], ids=["adam", "sgd", "nesterov"])
def test_a_reloaded_state_continues_bit_for_bit(tmp_path, precision, ema_decay, rule):
    def make():
        torch.manual_seed(1)
        model = nn.Linear(6, 5)
        return model, MixedPrecisionOptimizer(
            model, precision, TrainConfig(ema_decay=ema_decay, **rule)
        )

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
    state = {"moments": list(half.moment_kinds)}
    save_checkpoint(tmp_path / "c", half.weights(), half.moments(), state)
    saved = load_checkpoint(tmp_path / "c", with_training=True)
    resumed, rest = make()
    rest.load(saved.model, saved.training, 3)
    advance(resumed, rest, range(3, 6))
    for name, tensor in weights.weights().items():
        assert torch.equal(tensor, rest.weights()[name])
    for name, tensor in weights.moments().items():
        assert torch.equal(tensor, rest.moments()[name])
    assert weights.moments().keys() == rest.moments().keys()


@pytest.mark.parametrize(
    ("rule", "reference"),
    [
        (
            {"weight_decay": 0.1, "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-6},
            lambda p: torch.optim.AdamW(p, betas=(0.8, 0.9), eps=1e-6, weight_decay=0.1),
        ),
        (SGD, lambda p: torch.optim.SGD(p, lr=1.0)),
        (MOMENTUM, lambda p: torch.optim.SGD(p, lr=1.0, momentum=0.9)),
        (NESTEROV, lambda p: torch.optim.SGD(p, lr=1.0, momentum=0.9, nesterov=True)),
        # without momentum torch's decay, a part of the gradient, is the decoupled one
        ({**SGD, "weight_decay": 0.1}, lambda p: torch.optim.SGD(p, lr=1.0, weight_decay=0.1)),
    ],
    ids=["adamw", "sgd", "momentum", "nesterov", "sgd-decay"],
)
def test_steps_are_torchs(rule, reference):
    torch.manual_seed(1)
    model = nn.Linear(4, 3, bias=False)
    theirs = model.weight.detach().clone().requires_grad_()
    ours, torchs = MixedPrecisionOptimizer(model, "fp32", TrainConfig(**rule)), reference([theirs])
    for rate in (0.1, 0.2, 0.05, 0.1, 0.3):
        gradient = torch.randn(3, 4)
        ours.gradients[0].add_(8 * gradient)
        ours.step(rate, 1 / 8)
        theirs.grad = gradient.clone()
        torchs.param_groups[0]["lr"] = rate
        torchs.step()
    torch.testing.assert_close(model.weight, theirs, atol=1e-6, rtol=1e-5)


def test_momentum_is_the_one_in_the_books_and_decay_stays_out_of_it():
    torch.manual_seed(1)
    model = nn.Linear(4, 3, bias=False)
    expected, speed = model.weight.detach().double(), torch.zeros(3, 4).double()
    ours = MixedPrecisionOptimizer(model, "fp32", TrainConfig(weight_decay=0.1, **MOMENTUM))
    for rate in (0.1, 0.2, 0.05):
        gradient = torch.randn(3, 4)
        ours.gradients[0].add_(gradient)
        ours.step(rate, 1.0)
        speed = 0.9 * speed + gradient.double()
        expected = (1 - rate * 0.1) * expected - rate * speed
    torch.testing.assert_close(model.weight.detach().double(), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("rule", "kinds"),
    [({}, {"first", "second"}), (SGD, set()), (MOMENTUM, {"momentum"})],
    ids=["adam", "sgd", "momentum"],
)
def test_moments_are_there_from_the_start_and_no_more_than_the_rule_needs(rule, kinds):
    made = MixedPrecisionOptimizer(nn.Linear(2, 2), "fp32", TrainConfig(**rule))
    assert {name.partition(".")[0] for name in made.moments()} == kinds
    assert set(made.moment_kinds) == kinds


def test_tied_weights_are_one():
    model = nn.ModuleList([nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)])
    model[1].weight = model[0].weight
    assert list(MixedPrecisionOptimizer(model, "fp32", TrainConfig()).weights()) == ["0.weight"]


def test_the_gradient_norm_shows_what_is_not_finite():
    model = nn.Linear(2, 2)
    weights = MixedPrecisionOptimizer(model, "fp32", TrainConfig())
    weights.gradients[0].add_(3.0)
    assert weights.gradient_norm() == pytest.approx(6.0)
    weights.gradients[1][0] = float("nan")
    assert weights.gradient_norm() != weights.gradient_norm()
    weights.zero_grad()
    assert weights.gradient_norm() == 0.0


def test_decay_pulls_weights_toward_zero():
    model = nn.Linear(2, 2)
    before = model.weight.detach().clone()
    MixedPrecisionOptimizer(model, "fp32", TrainConfig(weight_decay=0.5)).step(0.1, 1.0)
    torch.testing.assert_close(model.weight.detach(), before * (1 - 0.05))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_moving_average_is_the_one_in_the_books_and_is_what_is_used(precision):
    torch.manual_seed(1)
    model = nn.Linear(4, 3, bias=False)
    plain = nn.Linear(4, 3, bias=False)
    plain.load_state_dict(model.state_dict())
    averaged = MixedPrecisionOptimizer(model, precision, TrainConfig(ema_decay=0.6))
    masters = MixedPrecisionOptimizer(plain, precision, TrainConfig())
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


@pytest.mark.family("batch_norm")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_running_averages_are_saved_and_loaded_in_full_precision(precision):
    model, again = (small(norm_kind="batch").train() for _ in range(2))
    optimizer = MixedPrecisionOptimizer(model, precision, TrainConfig())
    model.states(*batch())
    saved = optimizer.weights()
    averages = running_averages(model)
    assert averages.keys() <= saved.keys()
    assert all(part.dtype == torch.float32 for part in averages.values())
    MixedPrecisionOptimizer(again, precision, TrainConfig()).load(saved, optimizer.moments(), 0)
    for name, part in running_averages(again).items():
        assert part.equal(averages[name]) and (part != 0).any()


def test_gradients_converted_together_are_those_converted_one_by_one():
    found = []
    for together in (False, True):
        torch.manual_seed(1)
        model = nn.ModuleList([nn.Linear(6, 5), nn.Linear(5, 4)])
        weights = MixedPrecisionOptimizer(model, "bf16", TrainConfig())
        weights._converts_together = together  # as on a GPU
        for layers in ([*model], [model[0]], [model[1]]):  # some weights have no gradient
            x = torch.randn(7, layers[0].in_features).bfloat16()
            for layer in layers:
                x = layer(x)
            x.square().sum().backward()
            weights.accumulate_gradients()
            assert all(parameter.grad is None for parameter in model.parameters())
        found.append(weights.gradients)
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype == torch.float32
        assert torch.equal(one, other)
