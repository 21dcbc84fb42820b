"""Scores of recurrent attention against the equations, number by number."""

import math

import pytest
import torch

from heedful.families.recurrent.scores import RecurrentAttention

SCORES = ["dot", "general", "scaled", "additive", "normed-additive", "product"]


def score_of(attention, kind, q, h):
    """One score by its equation."""
    named = {name: weight.detach() for name, weight in attention.named_parameters()}
    if kind == "dot":
        return float(q @ h)
    if kind in ("general", "scaled"):
        return float(named.get("scale", 1.0) * (q @ (named["key_proj.weight"] @ h)))
    if kind == "product":
        asked, seen = named["query_proj.weight"] @ q, named["key_proj.weight"] @ h
        return float((named["energy"] * torch.tanh(asked) * torch.tanh(seen)).sum())
    inner = named["query_proj.weight"] @ q + named["key_proj.weight"] @ h
    v = named["energy"]
    if kind == "normed-additive":
        inner = inner + named["bias"]
        v = named["scale"] * v / math.sqrt(sum(float(x) ** 2 for x in v))
    return float(v @ torch.tanh(inner))


@pytest.mark.parametrize("kind", SCORES)
def test_each_score_is_its_equation(kind):
    memory_width = 6 if kind == "dot" else 4
    attention = RecurrentAttention(kind, 6, memory_width, 5)
    for weight in attention.parameters():
        torch.nn.init.normal_(weight)
    query, memory = torch.randn(2, 3, 6), torch.randn(2, 5, memory_width)
    mask = torch.arange(5) < torch.tensor([[[5]], [[2]]])
    context, weights = attention(query, attention.project(memory), memory, mask)
    for row, count in ((0, 5), (1, 2)):
        for place in range(3):
            scores = [score_of(attention, kind, query[row, place], h) for h in memory[row, :count]]
            expected = torch.softmax(torch.tensor(scores), 0)
            torch.testing.assert_close(weights[row, place, :count], expected)
            assert not weights[row, place, count:].any()
            torch.testing.assert_close(context[row, place], expected @ memory[row, :count])


def test_the_numbers_g_begin_as_tf_nmt_begins_them():
    assert RecurrentAttention("scaled", 4, 4, 9).scale.item() == 1.0
    assert RecurrentAttention("normed-additive", 4, 4, 16).scale.item() == 0.25


def test_a_row_of_padding_has_no_nan():
    attention = RecurrentAttention("dot", 4, 4, 4)
    memory = torch.randn(1, 3, 4)
    none = torch.zeros(1, 1, 3, dtype=torch.bool)
    assert attention(memory, memory, memory, none)[0].isfinite().all()
