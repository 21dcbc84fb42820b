from itertools import pairwise

import pytest
import torch

from heedful.config.load import load_config
from heedful.config.model import AttentionConfig
from heedful.experiments.work import (
    search_flops,
    shape_of,
    spread_lengths,
    step_flops,
    synthetic_pairs,
)
from tests.support.models import small


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


def test_a_search_counts_every_step_of_every_hypothesis():
    with torch.device("meta"):
        model = small()

    def of(source, target, beam):
        return search_flops(model, source, target, beam)

    # of a sentence's steps each attends to one more position, and to the whole source
    pair = 2 * 2 * 16 * 2  # of two layers: scores and contexts, all heads together
    steps = [of([6], [length], 1) for length in (1, 2, 3)]
    assert (steps[2] - steps[1]) - (steps[1] - steps[0]) == pair
    assert of([4, 6], [3, 2], 1) == of([4], [3], 1) + of([6], [2], 1)
    # what more hypotheses cost is the decoder's part, without the memory's keys and values
    encoded = of([4], [0], 5)
    assert encoded == of([4], [0], 1) > 0
    assert of([4], [3], 5) - encoded == 5 * (of([4], [3], 1) - encoded)


def test_a_search_in_a_window_reads_no_more_keys_than_it_has():
    model = small(attention=AttentionConfig(window=2))
    pair = 2 * 2 * 16 * 2
    steps = [search_flops(model, [6], [length], 1) for length in (1, 2, 3, 4)]
    first, second, third = (longer - shorter for shorter, longer in pairwise(steps))
    assert (second - first, third - second) == (0, 0)
    whole = [search_flops(small(), [6], [length], 1) for length in (3, 4)]
    assert whole[1] - whole[0] - third == 2 * pair  # the two positions before the last two


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
