"""The criteria for positional encodings, computed, and dot products against theory."""

import math

import numpy as np
import pytest

from heedful.model.embedding import code_rates, paper_rates
from heedful.paper.positions import CRITERIA, Scheme, check_criteria, products, schemes

# Unique, deterministic, same distance, generalizes.
EXPECTED = {
    "index": (True, True, True, False),
    "one-hot": (True, True, True, False),
    "normalized": (True, True, False, True),
    "interleaved": (True, True, True, True),
    "halves": (True, True, True, True),
}


def scheme(name, d_model=64):
    return next(one for one in schemes(d_model) if one.name == name)


@pytest.mark.parametrize(("d_model", "length"), [(64, 40), (512, 64), (8, 8), (512, 100)])
def test_each_simpler_encoding_fails_one_criterion(d_model, length):
    found = {one.name: check_criteria(one, length) for one in schemes(d_model)}
    marks = {name: tuple(one.holds for one in verdicts) for name, verdicts in found.items()}
    assert marks == EXPECTED
    for verdicts in found.values():
        assert tuple(one.criterion for one in verdicts) == CRITERIA


def test_the_numbers_that_decide():
    normalized = check_criteria(scheme("normalized"), 10)[2]
    assert normalized.number == pytest.approx(0.25 / 0.10)
    assert "0.25 (4), 0.1 (10)" in normalized.reason
    assert check_criteria(scheme("one-hot"), 40)[3].number == 64
    assert check_criteria(scheme("one-hot"), 40)[0].number == pytest.approx(math.sqrt(2))
    assert check_criteria(scheme("index"), 40)[3].number == pytest.approx(4)


def test_one_hot_vectors_do_not_reach_a_sentence_longer_than_they_are_wide():
    unique = check_criteria(scheme("one-hot", 16), 20)[0]
    assert (unique.holds, unique.number) == (False, 16)


def test_encodings_that_break_a_criterion_are_found():
    random = np.random.default_rng(1)
    drawn = Scheme("drawn", "", lambda n: random.random((n, 4)))
    assert [one.holds for one in check_criteria(drawn, 12)][:3] == [True, False, False]
    parity = Scheme("parity", "", lambda n: np.arange(n)[:, None] % 2.0)
    assert [one.holds for one in check_criteria(parity, 12)] == [False, True, True, False]
    last_shared = Scheme("shared", "", lambda n: np.minimum(np.arange(n), 11.0)[:, None])
    assert check_criteria(last_shared, 12)[3].number == 12
    same = Scheme("same", "", lambda n: np.ones((n, 1)))
    assert check_criteria(same, 12)[2].number == 1


@pytest.mark.parametrize(
    ("layout", "rates_of"), [("interleaved", paper_rates), ("halves", code_rates)]
)
def test_products_of_sinusoids_are_sums_of_cosines(layout, rates_of):
    table = scheme(layout).encode(50)
    found = products(table)
    rates = rates_of(64).numpy()
    for i in (0, 7, 49):
        for j in (0, 3, 30):
            expected = sum(math.cos(rate * (i - j)) for rate in rates)
            assert found.table[i, j] == pytest.approx(expected, abs=1e-4)
    assert found.uneven < 1e-6
    assert found.by_distance[0] == 1
    assert found.by_distance[1] == pytest.approx(np.cos(rates).mean(), abs=1e-6)
    assert 2 < found.falls_until < 20


def test_products_of_an_index_depend_on_more_than_the_distance():
    found = products(scheme("index").encode(20))
    assert found.uneven > 0.9
    assert found.falls_until == 19
    assert products(scheme("one-hot").encode(20)).uneven == 0
