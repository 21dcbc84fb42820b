import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.batching import BatchOrder
from tests.support.batches import order, pairs, text


def places(lengths, rows):
    """Places of both sides, padding included."""
    return len(rows) * sum(max(lengths[row][side] for row in rows) for side in (0, 1))


def useful_share(lengths, batch, shares):
    """Real tokens as a share of what all ranks could compute in the time of the slowest one."""
    heaviest = max(sum(places(lengths, rows) for rows in share) for share in shares)
    return sum(sum(lengths[row]) for row in batch) / (len(shares) * heaviest)


@given(pairs, st.integers(1, 9), st.sampled_from([0.1, 1.0]), st.sampled_from([0, 12, 256]))
def test_every_pair_of_a_batch_stands_in_exactly_one_micro_batch(lengths, ranks, cost, left_out):
    made = order(lengths, padding_cost=cost, left_out=left_out)
    for batch in made.epoch(0):
        shares = made.cut(batch, ranks)
        assert len(shares) == ranks
        rows = [row for share in shares for part in share for row in part.tolist()]
        assert sorted(rows) == sorted(batch.tolist())


@given(pairs, st.integers(1, 5))
def test_no_micro_batch_is_too_large_unless_it_is_one_pair(lengths, ranks):
    made = order(lengths)
    for batch in made.epoch(0):
        for rows in (rows for share in made.cut(batch, ranks) for rows in share):
            widest = max(max(lengths[row]) for row in rows)
            assert len(rows) == 1 or len(rows) * widest <= 100


@given(pairs, st.integers(1, 5), st.sampled_from([5, 12, 256]))
def test_padding_that_is_left_out_fills_no_micro_batch(lengths, ranks, left_out):
    made = order(lengths, left_out=left_out)
    for batch in made.epoch(0):
        for rows in (rows for share in made.cut(batch, ranks) for rows in share):
            widest = max(max(lengths[row]) for row in rows)
            tokens = max(sum(lengths[row][side] for row in rows) for side in (0, 1))
            computed = tokens if widest <= left_out else len(rows) * widest
            assert len(rows) == 1 or computed <= 100


def test_a_batch_without_padding_is_computed_at_once():
    lengths = [pair for pair in text(8000) if max(pair) <= 100]
    sizes = {"batch_tokens": 4096, "micro_batch_tokens": 4608}
    with_padding, without = (order(lengths, left_out=left_out, **sizes) for left_out in (0, 256))
    batches = with_padding.epoch(0)
    assert all(len(with_padding.cut(batch, 1)[0]) > 1 for batch in batches)
    assert all(len(without.cut(batch, 1)[0]) == 1 for batch in batches)
    longest = without.largest()
    assert max(sum(lengths[row][side] for row in longest) for side in (0, 1)) <= 4608
    assert len(longest) >= len(with_padding.largest())


@given(pairs)
def test_the_largest_micro_batch_is_as_large_as_any(lengths):
    made = order(lengths)
    largest = made.largest()
    cost = len(largest) * max(max(lengths[row]) for row in largest) ** 2
    for batch in made.epoch(0):
        for rows in (rows for share in made.cut(batch, 1) for rows in share):
            assert len(rows) * max(max(lengths[row]) for row in rows) ** 2 <= 2 * cost


@given(pairs, st.integers(10, 120), st.sampled_from(["real", "padded"]))
def test_without_padding_no_micro_batch_is_larger_than_the_one_that_is_tried(
    lengths, batch_tokens, counting
):
    made = order(lengths, batch_tokens=batch_tokens, counting=counting, left_out=256)

    def tokens(rows):
        return max(sum(lengths[row][side] for row in rows) for side in (0, 1))

    longest = max(map(max, lengths))
    tried = tokens(made.largest()) + longest - 1  # one more pair would not have fitted
    for batch in made.epoch(0):
        assert all(tokens(rows) <= tried for share in made.cut(batch, 1) for rows in share)


def test_small_batches_are_tried_with_the_memory_that_they_need():
    lengths = text(2000)
    made = order(lengths, batch_tokens=256, micro_batch_tokens=4608, left_out=256)
    assert sum(max(lengths[row]) for row in made.largest()) <= 4 * 256


@pytest.mark.parametrize(("ranks", "wanted"), [(1, 0.8), (8, 0.87), (16, 0.87), (32, 0.87)])
def test_ranks_have_equally_much_to_do_and_little_of_it_is_padding(ranks, wanted):
    lengths = text(8000)
    made = order(lengths, batch_tokens=25_000, micro_batch_tokens=25_000)
    batches = made.epoch(0)
    found = [useful_share(lengths, batch, made.cut(batch, ranks)) for batch in batches]
    assert np.mean(found) >= wanted


def test_where_padding_is_cheap_a_batch_is_cut_into_fewer_parts():
    lengths = text(8000)
    dear, cheap = (
        BatchOrder(
            *(np.array(side) for side in zip(*lengths, strict=True)),
            *(25_000, 25_000, "real", 1),
            padding_cost=cost,
        )
        for cost in (1.0, 0.1)
    )
    batch = dear.epoch(0)[0]
    assert len(cheap.cut(batch, 1)[0]) < len(dear.cut(batch, 1)[0])


def test_one_pair_is_cut_no_further():
    made = order([(400, 300)])
    assert [[part.tolist() for part in share] for share in made.cut(np.array([0]), 3)] == [
        [[0]],
        [],
        [],
    ]
