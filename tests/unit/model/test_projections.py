"""Heads side by side and split hold the same numbers."""

import torch

from heedful.model.projections import KeyValue, Projections, merge_heads, split_heads


def test_splitting_and_merging_heads_undo_each_other():
    x = torch.randn(2, 5, 12)
    heads = split_heads(x, 3)
    assert heads.shape == (2, 3, 5, 4)
    assert torch.equal(heads[1, 2, 3], x[1, 3, 8:])
    assert torch.equal(merge_heads(heads), x)


def test_projections_split_alike_together_and_apart():
    query, keys, values = (torch.randn(2, 5, width) for width in (6, 6, 9))
    together = Projections(torch.cat((query, keys, values), dim=-1), None, 3, 2)
    apart = Projections(query, torch.cat((keys, values), dim=-1), 3, 2)
    for projections in (together, apart):
        found, key_value = projections.split()
        assert torch.equal(found, split_heads(query, 3))
        assert torch.equal(key_value.keys, split_heads(keys, 3))
        assert torch.equal(key_value.values, split_heads(values, 3))


def test_rows_of_keys_and_values_are_selected_together():
    both = KeyValue(torch.randn(3, 2, 4, 5), torch.randn(3, 2, 4, 6))
    found = both.select(torch.tensor([2, 0, 2]))
    assert torch.equal(found.keys, both.keys[[2, 0, 2]])
    assert torch.equal(found.values, both.values[[2, 0, 2]])
