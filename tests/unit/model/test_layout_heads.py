"""Heads side by side and split hold the same numbers."""

import torch

from heedful.model.layout import merge_heads, split_heads
from heedful.model.parts import KeyValue


def test_splitting_and_merging_heads_undo_each_other():
    x = torch.randn(2, 5, 12)
    heads = split_heads(x, 3)
    assert heads.shape == (2, 3, 5, 4)
    assert torch.equal(heads[1, 2, 3], x[1, 3, 8:])
    assert torch.equal(merge_heads(heads), x)


def test_rows_of_keys_and_values_are_selected_together():
    both = KeyValue(torch.randn(3, 2, 4, 5), torch.randn(3, 2, 4, 6))
    found = both.select(torch.tensor([2, 0, 2]))
    assert torch.equal(found.keys, both.keys[[2, 0, 2]])
    assert torch.equal(found.values, both.values[[2, 0, 2]])
