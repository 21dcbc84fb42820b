"""Additive scores: the equation in value and gradient, however the queries are cut."""

import pytest
import torch

from heedful.model import additive
from heedful.model.additive import additive_attention, additive_scores
from heedful.model.attention import MultiHeadAttention
from heedful.model.layout import Layout, padding_mask, unpad


def twin(query, key, energy):
    """The equation, with every sum at once."""
    inner = torch.tanh(query.unsqueeze(3) + key.unsqueeze(2))
    return torch.einsum("bhqkd,hd->bhqk", inner, energy)


@pytest.mark.parametrize("most", [1, 400, 1 << 22])
def test_scores_are_the_equation_in_value_and_gradient(monkeypatch, most):
    monkeypatch.setattr(additive, "MOST_NUMBERS", most)
    leaves = [torch.randn(s).requires_grad_() for s in ((2, 3, 7, 4), (2, 3, 5, 4), (3, 4))]
    pull = torch.randn(2, 3, 7, 5)
    found, expected = additive_scores(*leaves), twin(*leaves)
    torch.testing.assert_close(found, expected)
    ours = torch.autograd.grad(found, leaves, pull)
    theirs = torch.autograd.grad(expected, leaves, pull)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def test_one_score_by_hand():
    query, key, energy = torch.randn(1, 2, 1, 3), torch.randn(1, 2, 1, 3), torch.randn(2, 3)
    (_, expected), (_, found) = (
        [sum(float(energy[h, i]) * float(torch.tanh(query[0, h, 0, i] + key[0, h, 0, i]))
             for i in range(3)) for h in range(2)],
        additive_scores(query, key, energy).flatten().tolist(),
    )  # fmt: skip
    assert found == pytest.approx(expected, abs=1e-6)


def test_weights_sum_to_one_over_what_is_open():
    x, energy = torch.randn(2, 2, 5, 3), torch.randn(2, 3)
    mask = (torch.arange(5) < torch.tensor([[5], [2]]))[:, None, None]
    context, weights = additive_attention(x, x, x, energy, mask)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 5))
    assert not weights[1, :, :, 2:].any()
    torch.testing.assert_close(context, weights @ x)


def test_padding_that_was_removed_changes_nothing():
    attention = MultiHeadAttention(16, 4, score="additive")
    x = torch.randn(2, 6, 16)
    ids = torch.tensor([[5, 6, 7, 0, 0, 0], [5, 6, 7, 8, 9, 4]])
    mask, real = padding_mask(ids, 0), ids != 0
    padded, _ = attention(x, x, mask)
    short, packing = unpad(x, real, 6)
    assert packing is not None
    found, _ = attention(short, short, Layout(mask, packing, packing))
    torch.testing.assert_close(packing.unpack(found)[real], padded[real])
