import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.config.load import load_config
from heedful.config.recipes import recipe, recipe_names
from heedful.training.schedule import Schedule, paper_rate

STEPS = st.integers(1, 10**6)
PEAKS = st.floats(1e-6, 10)


def schedule_of(*settings):
    return Schedule.of(load_config("paper-base", ["train.steps=100", *settings]))


@pytest.mark.parametrize(
    ("step", "d_model", "expected"),
    [
        # d^-0.5 * min(step^-0.5, step * 4000^-1.5), computed by hand
        (1, 512, 1.746928107421711e-07),
        (4000, 512, 6.987712429686843e-04),
        (100_000, 512, 1.397542485937369e-04),
        (1, 1024, 1.2352647110032733e-07),
        (4000, 1024, 4.941058844013093e-04),
        (100_000, 1024, 9.882117688026186e-05),
    ],
)
def test_the_rate_is_equation_3(step, d_model, expected):
    assert paper_rate(step, d_model, 4000) == pytest.approx(expected, rel=1e-12)


def test_the_peak_is_at_the_end_of_warmup():
    rates = [paper_rate(step, 512, 40) for step in range(1, 200)]
    assert rates.index(max(rates)) + 1 == 40


def test_the_factor_multiplies_all_of_it():
    assert paper_rate(7, 64, 10, 2.5) == pytest.approx(2.5 * paper_rate(7, 64, 10))


@pytest.mark.parametrize(
    "name", [name for name in recipe_names() if recipe(name).train.schedule == "paper"]
)
def test_the_rates_of_a_recipe_are_those_of_the_formula_to_the_bit(name):
    config = recipe(name)
    d, w, factor = config.model.d_model, config.train.warmup, config.train.learning_rate_factor
    schedule = Schedule.of(config)
    for step in (1, 2, 3, w - 1, w, w + 1, 2 * w, 99_999, 300_000):
        # as it was written before there were other schedules
        assert schedule.rate(step) == float(factor * d**-0.5 * min(step**-0.5, step * w**-1.5))


@given(STEPS, st.integers(1, 10**5), st.integers(1, 4096))
def test_inverse_sqrt_is_equation_3_with_another_peak(step, warmup, d_model):
    peak = (d_model * warmup) ** -0.5
    rate = Schedule("inverse_sqrt", warmup=warmup, peak=peak).rate(step)
    assert rate == pytest.approx(paper_rate(step, d_model, warmup))


@given(PEAKS, st.integers(2, 10**5), st.data())
def test_all_rise_alike_and_reach_the_peak_at_the_end_of_the_warm_up(peak, warmup, data):
    step = data.draw(st.integers(1, warmup))
    for name in ("constant", "inverse_sqrt", "cosine", "plateau"):
        made = Schedule(name, warmup, peak=peak, minimum=peak / 9, steps=2 * warmup)
        assert made.rate(step) == pytest.approx(peak * step / warmup)


def torch_rates(make, count):
    """The rate before each call of torch's scheduler."""
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.4)
    scheduler, rates = make(optimizer), []
    for _ in range(count):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


def test_cosine_is_torchs_from_the_peak_on():
    rates = torch_rates(
        lambda one: torch.optim.lr_scheduler.CosineAnnealingLR(one, T_max=90, eta_min=0.05), 91
    )
    made = schedule_of(
        "train.schedule=cosine",
        "train.learning_rate=0.4",
        "train.min_learning_rate=0.05",
        "train.warmup=10",
    )
    assert [made.rate(10 + step) for step in range(91)] == pytest.approx(rates)
    assert made.rate(100) == pytest.approx(0.05)
    assert made.rate(1000) == pytest.approx(0.05)


def test_step_is_torchs():
    rates = torch_rates(
        lambda one: torch.optim.lr_scheduler.StepLR(one, step_size=7, gamma=0.3), 100
    )
    made = schedule_of(
        "train.schedule=step",
        "train.learning_rate=0.4",
        "train.decay_steps=7",
        "train.decay_factor=0.3",
        "train.warmup=0",
    )
    assert [made.rate(step) for step in range(1, 101)] == pytest.approx(rates)
    rates = torch_rates(
        lambda one: torch.optim.lr_scheduler.MultiStepLR(one, range(50, 100, 7), gamma=0.5), 100
    )
    made = schedule_of(
        "train.schedule=step",
        "train.learning_rate=0.4",
        "train.decay_start=50",
        "train.decay_steps=7",
        "train.min_learning_rate=0.01",
        "train.warmup=0",
    )
    assert [made.rate(step) for step in range(1, 101)] == pytest.approx(
        [max(0.01, r) for r in rates]
    )


@pytest.mark.parametrize(("step", "decays"), [(1, 0), (50, 0), (51, 1), (57, 1), (58, 2), (64, 2)])
def test_the_first_decay_comes_after_the_start(step, decays):
    made = Schedule("step", warmup=0, peak=0.4, decay_start=50, decay_steps=7)
    assert made.rate(step) == 0.4 * 0.5**decays


def test_a_rate_falls_to_the_minimum_and_no_further():
    plateau, falling = (
        Schedule(name, warmup=10, peak=0.4, minimum=1e-3) for name in ("plateau", "inverse_sqrt")
    )
    assert plateau.rate(100, decays=30) == 1e-3
    assert falling.rate(10**9) == 1e-3
    assert plateau.rate(100, decays=3) == 0.05
    assert math.isclose(plateau.rate(5, decays=1), 0.1)  # the warm-up of a lowered rate


def test_a_schedule_that_goes_on_counts_the_earlier_steps():
    for name in ("inverse_sqrt", "constant", "cosine", "step"):
        more = ["train.decay_steps=30"] if name == "step" else []
        settings = [f"train.schedule={name}", "train.learning_rate=0.1", "train.warmup=20", *more]
        whole = schedule_of(*settings)
        config = load_config("paper-base", [*settings, "train.steps=60"])
        rest = Schedule.of(config, earlier_steps=40)
        for step in range(1, 61):
            assert rest.rate(step) == whole.rate(40 + step)
        assert rest.is_past_warmup(1)
        assert not whole.is_past_warmup(19)
        assert whole.is_past_warmup(20)
