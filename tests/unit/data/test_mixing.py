from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.batching import BatchOrder
from heedful.data.mixing import MOST_WEIGHT, Mixture, is_weight, mixing_shares

MIXES = st.lists(st.tuples(st.integers(1, 40), st.floats(0.01, 10)), min_size=1, max_size=5).map(
    lambda pairs: tuple(zip(*pairs, strict=True))
)


def mixture(sizes, weights, seed=1):
    return Mixture(tuple(sizes), tuple(mixing_shares(sizes, weights, 1.0)), seed)


def endless(size, seed, corpus):
    """The slow twin: one pair after the other, permutation after permutation."""
    number = 0
    while True:
        yield from np.random.Generator(np.random.PCG64([seed, corpus, number])).permutation(size)
        number += 1


@given(MIXES, st.integers(0, 3))
def test_an_epoch_is_a_stretch_of_each_endless_corpus(mix, epoch):
    sizes, weights = mix
    made = mixture(sizes, weights)
    first, expected = 0, []
    for corpus, (size, count) in enumerate(zip(sizes, made.counts, strict=True)):
        reader = endless(size, 1, corpus)
        for _ in range(epoch * count):
            next(reader)
        expected += [first + next(reader) for _ in range(count)]
        first += size
    assert made.rows(epoch).tolist() == expected


@given(MIXES)
def test_no_pair_comes_again_before_all_others_of_its_corpus(mix):
    sizes, weights = mix
    made = mixture(sizes, weights)
    seen = Counter()
    for epoch in range(5):
        seen.update(made.rows(epoch).tolist())
    edges = np.cumsum([0, *sizes])
    for corpus, size in enumerate(sizes):
        times = [seen[row] for row in range(edges[corpus], edges[corpus] + size)]
        assert max(times) - min(times) <= 1


@given(MIXES)
def test_counts_follow_the_shares(mix):
    sizes, weights = mix
    made = mixture(sizes, weights)
    for count, share in zip(made.counts, made.shares, strict=True):
        assert count >= 1
        assert abs(count - share * sum(sizes)) <= 1
    if min(np.array(made.shares) * sum(sizes)) >= 1:
        assert sum(made.counts) == sum(sizes)


def test_temperature_draws_the_shares_together():
    natural = mixing_shares([10_000, 100], None, 1.0)
    flat = mixing_shares([10_000, 100], None, 100.0)
    assert natural == pytest.approx([100 / 101, 1 / 101])
    assert flat == pytest.approx([0.5, 0.5], abs=0.02)
    assert mixing_shares([10_000, 100], [1.0, 3.0], 5.0) == pytest.approx([0.25, 0.75])


def test_the_batches_of_a_mixture_hold_the_rows_of_the_epoch():
    sizes = (30, 5)
    lengths = np.random.default_rng(0).integers(2, 9, 35).astype(np.int32)
    made = mixture(sizes, (1.0, 1.0))
    order = BatchOrder(lengths, lengths, 60, 30, "real", 1, made)
    for epoch in (0, 1, 2):
        batches = order.epoch(epoch)
        rows = sorted(int(row) for batch in batches for row in batch)
        assert rows == sorted(made.rows(epoch).tolist())
        assert Counter(row >= 30 for row in rows) == {False: 18, True: 17}
    assert order.epoch(1)[0].tolist() == order.epoch(1)[0].tolist()


def test_weights_have_a_finite_sum_and_are_numbers():
    for weight in (1.0, 0.5, 5e-324, MOST_WEIGHT):
        assert is_weight(weight)
        assert mixing_shares([1, 1], [weight, weight], 1.0) == [0.5, 0.5]
    for value in (0, -1, float("inf"), float("nan"), 1e308, 10**400, True, "1", None):
        assert not is_weight(value)
