"""Means and their margins."""

import math

import numpy as np
import pytest

from heedful.experiments.estimate import (
    Estimate,
    Noise,
    chance_of,
    is_positive,
    rank_correlation,
    with_margin,
)


def test_a_margin_is_that_of_students_t():
    values = [float(value) for value in range(20)]
    found = Estimate.of(values)
    assert found.value == 9.5
    assert found.margin == pytest.approx(2.093 * np.std(values, ddof=1) / math.sqrt(20))
    assert Estimate.of([1.0, 3.0]).margin == pytest.approx(12.706)
    assert Estimate.of([1.0, 2.0, 3.0]).margin == pytest.approx(4.303 / math.sqrt(3))
    thirty = [float(value) for value in range(30)]
    assert Estimate.of(thirty).margin == pytest.approx(2.045 * np.std(thirty, ddof=1) / 30**0.5)
    more = np.arange(31.0)
    assert Estimate.of(more).margin == pytest.approx(1.96 * np.std(more, ddof=1) / 31**0.5)


def test_an_interval_holds_the_mean_in_nineteen_of_twenty_draws():
    random = np.random.default_rng(1)
    estimates = [Estimate.of(random.normal(7, 2, 5).tolist()) for _ in range(4000)]
    held = sum(estimate.holds(7) for estimate in estimates)
    assert held / 4000 == pytest.approx(0.95, abs=0.012)
    low, high = estimates[0].interval
    assert (low + high) / 2 == pytest.approx(estimates[0].value)
    assert estimates[0].holds(high - 1e-9)
    assert not estimates[0].holds(high + 1e-9)


@pytest.mark.parametrize("value", [1, 0.25, 1e9])
def test_times_and_rates_are_numbers_above_zero(value):
    assert is_positive(value)


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, 10**400, True, None, "1", [1]])
def test_what_no_time_or_rate_can_be_is_told(value):
    assert not is_positive(value)


@pytest.mark.parametrize(
    ("value", "margin", "written"),
    [
        (0.067, 0.00139, "0.0670 ± 0.0014"),
        (3.97, 0.461, "3.97 ± 0.46"),
        (26.71, 12.4, "27 ± 12"),
        (18726.4, 1736.6, "18,726 ± 1,737"),
        (0.9973, 8.9e-05, "0.997300 ± 0.000089"),
        (6.897e11, 6.333e10, "6.90e+11 ± 6.3e+10"),
        (2.0e6, 5.0e6, "2.0e+06 ± 5.0e+06"),
        (-0.5, 0.25, "-0.50 ± 0.25"),
        (2.0, 0.0, "2 ± 0"),
    ],
)
def test_a_number_has_the_digits_that_its_margin_leaves(value, margin, written):
    assert with_margin(value, margin) == written == str(Estimate(value, margin))


def test_another_training_lies_within_the_margin_in_95_of_100_cases():
    draw = np.random.default_rng(1)
    inside = 0
    for _ in range(4_000):
        *seeds, another = draw.normal(30, 0.5, 4).tolist()
        inside += not Noise.of(seeds).exceeds(another)
    assert abs(inside / 4_000 - 0.95) < 0.015


def test_equal_numbers_have_no_ranks():
    assert rank_correlation([1, 2, 3], [5, 5, 5]) is None


def test_mean_and_deviation():
    noise = Noise.of([1.0, 2.0, 3.0])
    assert (noise.mean, noise.deviation) == (2.0, 1.0)
    assert noise.margin == pytest.approx(4.303 * (4 / 3) ** 0.5)
    assert noise.exceeds(7.0)
    assert not noise.exceeds(6.9)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1, 2, 3, 4], [10, 20, 30, 40], 1.0),
        ([1, 2, 3, 4], [4, 3, 2, 1], -1.0),
        ([1, 2, 2, 3], [1, 2, 3, 4], 0.948683298051),  # ties share their mean rank
    ],
)
def test_rank_correlation(first, second, expected):
    assert rank_correlation(first, second) == expected


def test_chance_is_the_share_of_orders_that_correlate_as_much():
    # of the 24 orders of four numbers only the one and its mirror image correlate perfectly
    assert chance_of([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(2 / 24, abs=0.01)
    assert chance_of([1, 2, 3, 4], [40, 30, 20, 10]) == pytest.approx(2 / 24, abs=0.01)
    assert chance_of([1, 2, 3, 4], [2, 4, 1, 3]) == pytest.approx(1.0)
    assert chance_of([1, 2, 3], [5, 5, 5]) is None
