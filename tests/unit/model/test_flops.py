"""Tokens and places of the rows of a batch."""

import numpy as np

from heedful.model.flops import RowLengths, pairs_of


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
