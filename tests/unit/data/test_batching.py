import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data import batching
from tests.support.batches import order, pairs, text


def tokens(lengths, rows):
    return max(sum(lengths[row][side] for row in rows) for side in (0, 1))


@given(pairs, st.integers(0, 5), st.sampled_from(["real", "padded"]), st.integers(1, 300))
def test_every_pair_stands_in_exactly_one_batch(lengths, epoch, counting, batch_tokens):
    batches = order(lengths, counting=counting, batch_tokens=batch_tokens).epoch(epoch)
    assert all(len(rows) for rows in batches)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))


def test_the_order_is_a_function_of_seed_and_epoch():
    lengths = text(500)

    def flat(seed, epoch):
        return [rows.tolist() for rows in order(lengths, seed=seed).epoch(epoch)]

    assert flat(1, 3) == flat(1, 3)
    assert flat(1, 3) != flat(1, 4)
    assert flat(1, 3) != flat(2, 3)


@pytest.mark.parametrize("counting", ["real", "padded"])
def test_batches_do_not_depend_on_how_much_is_computed_at_once(counting):
    lengths = text(3000)
    values = {"batch_tokens": 4096, "counting": counting, "block_tokens": 1024}
    few, many, cheap = (
        order(lengths, micro_batch_tokens=micro, padding_cost=cost, **values).epoch(2)
        for micro, cost in ((300, 1.0), (100_000, 1.0), (4096, 0.1))
    )
    for a, b, c in zip(few, many, cheap, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


@pytest.mark.parametrize("batch_tokens", [2000, 4096, 25_000])
def test_batches_hold_the_tokens_that_were_asked_for_and_mix_lengths(batch_tokens):
    lengths = text(batch_tokens * 110 // 30)
    batches = order(lengths, batch_tokens=batch_tokens).epoch(0)
    assert len(batches) >= 100
    sizes = np.array([tokens(lengths, rows) for rows in batches]) / batch_tokens
    assert sizes.mean() == pytest.approx(1.0, abs=0.01)
    assert np.mean(np.abs(sizes - 1.0) <= 0.05) >= 0.95
    targets = np.array([target for _, target in lengths])
    spread = np.mean([targets[rows].std() for rows in batches])
    assert spread == pytest.approx(targets.std(), rel=0.05)


def test_no_small_remainder_takes_a_step_of_its_own():
    sizes = [tokens([(7, 7)] * 60, rows) for rows in order([(7, 7)] * 60).epoch(0)]
    assert sum(sizes) == 420
    assert sizes == [210, 210]


def test_a_pair_larger_than_a_batch_is_a_batch():
    batches = order([(500, 3), (2, 2), (3, 400)], batch_tokens=100).epoch(0)
    assert sorted(map(len, batches)) in ([1, 2], [1, 1, 1])


def test_long_epochs_are_laid_out_window_by_window(monkeypatch):
    """A window holds the same batches as a corpus of its pairs would, up to their numbers."""
    lengths = text(2000)
    whole = order(lengths, batch_tokens=1000).epoch(0)
    monkeypatch.setattr(batching, "_WINDOW", 700)
    windows = order(lengths, batch_tokens=1000).epoch(0)
    assert sorted(np.concatenate(windows).tolist()) == list(range(2000))
    # the same shuffled order, cut anew at every window
    np.testing.assert_array_equal(np.concatenate(windows), np.concatenate(whole))
    edges = np.cumsum([len(rows) for rows in windows]).tolist()
    assert {667, 1334, 2000} <= set(edges)


# Counting padded tokens: tensor2tensor's buckets end at 8, 12, 16, 24, 32, 48, 64, 96, …


def bucket(lengths, row):
    ends = [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256]
    return next(number for number, end in enumerate(ends) if max(lengths[row]) <= end)


def test_a_padded_step_is_so_many_blocks_each_of_one_bucket():
    lengths = text(20_000)
    values = {"counting": "padded", "batch_tokens": 8192, "block_tokens": 1024}
    made = order(lengths, **values)
    batches = made.epoch(0)
    one, two, mixed = 0, 0, 0
    for rows in batches:
        buckets = [bucket(lengths, row) for row in rows]
        runs = 1 + sum(a != b for a, b in itertools.pairwise(buckets))
        mixed += runs
        one += len(set(buckets)) == 1
        two += 1
        padded = sum(max(lengths[row]) for row in rows)
        assert padded <= 9 * 1024
    assert one == 0  # blocks of a step come from several buckets
    assert two == len(batches)
    # 8 blocks a step, neighbors of the same bucket counted once; few blocks hold a left-over
    assert mixed / len(batches) <= 8.5
    assert made.epoch(0)[0].tolist() == batches[0].tolist()
    assert made.epoch(1)[0].tolist() != batches[0].tolist()


@pytest.mark.parametrize("block_tokens", [300, 4096])
def test_a_block_is_no_larger_than_a_batch(block_tokens):
    lengths, values = text(400), {"counting": "padded", "batch_tokens": 256}
    batches = order(lengths, block_tokens=block_tokens, **values).epoch(0)
    as_large = order(lengths, **values).epoch(0)
    for found, expected in zip(batches, as_large, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert sorted(np.concatenate(batches)) == list(range(400))
