import pytest

from heedful.bench.work import (
    flops_of,
    search_work,
    shape_of,
    spread_lengths,
    synthetic_pairs,
    training_work,
)
from heedful.config.load import load_config
from heedful.evaluation.cost import Work


def test_lengths_lie_around_their_mean():
    lengths = spread_lengths(25, 80)
    assert (min(lengths), max(lengths), sum(lengths)) == (20, 30, 2000)
    assert spread_lengths(1, 3) == [1, 1, 1]


def test_a_batch_has_the_asked_tokens_of_the_vocabulary():
    sources, targets = synthetic_pairs(100, 25, 20, 2000)
    assert len(sources) == len(targets) == 80
    assert sum(len(row) + 1 for row in sources) == 2000
    assert sum(len(row) + 1 for row in targets) == 1600
    assert {id_ for row in sources + targets for id_ in row} <= set(range(4, 100))
    assert synthetic_pairs(100, 25, 20, 2000) == (sources, targets)


def test_work_without_padding_is_that_of_a_batch_of_equal_lengths():
    assert training_work([7, 7, 7], [5, 5, 5]) == Work.of_batch(3, 7, 5, 15)
    assert training_work([7, 3], [5, 2]) == Work(10, 7, 7, 58, 29, 41)


def test_work_of_a_search_counts_every_step_of_every_hypothesis():
    steps = [(source, step) for source, out in ((4, 3), (6, 2)) for step in range(1, out + 1)]
    work = search_work([4, 6], [3, 2], beam=2)
    assert work.target == work.predicted == 2 * len(steps)
    assert work.target_target == 2 * sum(step for _, step in steps)
    assert work.target_source == 2 * sum(source for source, _ in steps)
    assert (work.source, work.source_source) == (10, 16 + 36)


def test_operations_are_those_of_the_paper_s_model():
    base = load_config("paper-base")
    batch = training_work([25] * 80, [25] * 80)
    # reference: 4,300 tokens a second where 800 GFLOP/s of products are the only cost
    assert 800e9 / (flops_of(base, 37_000).training(batch) / 4000) == pytest.approx(4300, rel=0.05)
    assert shape_of(base, 37_001)["vocabulary"] == 37_008
