import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.batching import BatchOrder


def order(lengths, **changes):
    values = {"batch_tokens": 200, "micro_batch_tokens": 100, "counting": "real", "seed": 1}
    source = np.array([s for s, _ in lengths], dtype=np.int32)
    target = np.array([t for _, t in lengths], dtype=np.int32)
    return BatchOrder(source, target, **{**values, **changes})


pairs = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=120)


@given(pairs, st.integers(0, 5), st.sampled_from(["real", "padded"]))
def test_every_pair_stands_in_exactly_one_batch(lengths, epoch, counting):
    batches = order(lengths, counting=counting).epoch(epoch)
    rows = np.concatenate([rows for batch in batches for rows in batch])
    assert sorted(rows.tolist()) == list(range(len(lengths)))


@given(pairs)
def test_no_micro_batch_is_too_large_unless_it_is_one_pair(lengths):
    for batch in order(lengths).epoch(0):
        for rows in batch:
            widest = max(max(lengths[row]) for row in rows)
            assert len(rows) == 1 or len(rows) * widest <= 100


@given(pairs)
def test_the_largest_batch_is_as_large_as_any(lengths):
    made = order(lengths)
    largest = made.largest()
    cost = len(largest) * max(max(lengths[row]) for row in largest) ** 2
    for batch in made.epoch(0):
        for rows in batch:
            assert len(rows) * max(max(lengths[row]) for row in rows) ** 2 <= 2 * cost


def test_the_order_is_a_function_of_seed_and_epoch():
    generator = np.random.default_rng(0)
    lengths = [tuple(pair) for pair in generator.integers(1, 40, (500, 2)).tolist()]

    def flat(seed, epoch):
        return [r.tolist() for b in order(lengths, seed=seed).epoch(epoch) for r in b]

    assert flat(1, 3) == flat(1, 3)
    assert flat(1, 3) != flat(1, 4)
    assert flat(1, 3) != flat(2, 3)


def test_batches_hold_about_the_tokens_that_were_asked_for():
    generator = np.random.default_rng(0)
    lengths = [tuple(pair) for pair in generator.integers(5, 40, (3000, 2)).tolist()]
    batches = order(lengths, batch_tokens=2000, micro_batch_tokens=400).epoch(0)
    sizes = [
        sum(max(sum(lengths[r][side] for r in rows) for side in (0, 1)) for rows in batch)
        for batch in batches
    ]
    assert max(sizes) <= 2000 + 400
    assert min(sizes) >= 2000 - 2 * 400


def test_little_of_a_batch_is_padding():
    generator = np.random.default_rng(0)
    target = np.clip(generator.normal(16, 5, 5000), 3, 60).astype(int)
    source = np.clip(target + generator.normal(0, 2, 5000), 3, 60).astype(int)
    lengths = list(zip(source.tolist(), target.tolist(), strict=True))
    real = sum(map(sum, lengths))
    padded = 0
    for batch in order(lengths, batch_tokens=4096, micro_batch_tokens=4096).epoch(0):
        for rows in batch:
            padded += len(rows) * max(lengths[row][0] for row in rows)
            padded += len(rows) * max(lengths[row][1] for row in rows)
    assert 1 - real / padded < 0.15
