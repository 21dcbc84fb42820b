import numpy as np
import pytest

from heedful.paper.systems.noise import Noise, chance_of, rank_correlation


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
