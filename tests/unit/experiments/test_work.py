import pytest

from heedful.config.load import load_config
from heedful.experiments.work import (
    shape_of,
    spread_lengths,
    step_flops,
    synthetic_pairs,
)


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


def test_operations_are_those_of_the_paper_s_model():
    base = load_config("paper-base")
    # reference: 4,300 tokens a second where 800 GFLOP/s of products are the only cost
    flops = step_flops(base, 37_000, [25] * 80, [25] * 80)
    assert 800e9 / (flops / 4000) == pytest.approx(4300, rel=0.05)
    assert shape_of(base, 37_001)["vocabulary"] == 37_008


def test_a_step_counts_real_tokens_alone():
    tiny = load_config("tiny")
    together = step_flops(tiny, 200, [7, 3], [5, 2])
    assert together == step_flops(tiny, 200, [7], [5]) + step_flops(tiny, 200, [3], [2])
