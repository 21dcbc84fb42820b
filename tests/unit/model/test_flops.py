"""Tokens and places of the rows of a batch, and the operations of a search."""

from itertools import pairwise

import numpy as np
import torch

from heedful.config.model import AttentionConfig
from heedful.model.contracts import search_flops
from heedful.model.flops import RowLengths, pairs_of
from tests.support.models import small


def test_rows_are_as_long_as_the_longest_or_end_with_their_tokens():
    padded, unpadded = RowLengths.padded([5, 3, 1]), RowLengths.unpadded([5, 3, 1])
    assert padded.places.tolist() == [5, 5, 5]
    assert unpadded.places.tolist() == [5, 3, 1]
    assert padded.computed(leaves_out=True).tolist() == unpadded.places.tolist()
    assert padded.computed(leaves_out=False).tolist() == padded.places.tolist()
    assert padded.longest == unpadded.longest == 5
    assert RowLengths.padded([]).longest == 0


def test_rows_without_a_token_have_one_place():
    assert RowLengths.padded([0, 0]).places.tolist() == [1, 1]  # as tensors of a batch


def test_lengths_change_with_their_padding():
    changed = RowLengths.padded([5, 3]).change(lambda length: 2 * length + 1)
    assert (changed.tokens.tolist(), changed.places.tolist()) == ([11, 7], [11, 11])


def test_pairs_are_all_or_those_up_to_a_position():
    positions = np.array([3, 1])
    assert pairs_of(positions) == 9 + 1
    assert pairs_of(positions, by_steps=True) == 1 + 2 + 3 + 1


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
