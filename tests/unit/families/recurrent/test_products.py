"""Products of a loop: the gradients of what all steps share are those of single steps."""

import pytest
import torch

from heedful.families.recurrent.products import PLAIN, LoopProducts
from tests.support.models import batch
from tests.unit.families.recurrent.test_decoder import BASE, SURE, build, by_steps


@pytest.mark.parametrize("choices", SURE, ids=str)
def test_gradients_of_a_known_target_are_those_of_a_search(choices):
    choices = {**BASE, **choices}
    if choices.get("score") == "dot":
        choices["decoder_hidden_size"] = 16
    model = build("recurrent", "recurrent", layers=2, **choices)
    source, target = batch()
    real = (target != model.padding).unsqueeze(2)  # what comes after the end has no loss
    pull = None
    found = []
    for run in (model.states, lambda *ids: by_steps(model, *ids)):
        out = run(source, target)
        pull = torch.randn_like(out) if pull is None else pull
        model.zero_grad()
        (out * pull * real).sum().backward()
        found.append({name: p.grad for name, p in model.named_parameters()})
    torch.testing.assert_close(found[0], found[1], atol=1e-5, rtol=1e-4)


def loop(products, weight, bias, keys, values, energy, queries):
    """A loop in which every product feeds the next step, and rows leave."""
    state, out = queries[0], []
    for query in queries:
        state = torch.tanh(products.linear(state[: len(query)] + query, weight, bias))
        asked = state.unsqueeze(1)
        scores = products.compare(asked, keys) + products.compare_additively(asked, keys, energy)
        state = state + products.mix(torch.softmax(scores, 2), values).squeeze(1)
        out.append(state.sum())
    return torch.stack(out)


def leaves():
    generator = torch.Generator().manual_seed(1)
    shapes = [(4, 4), (4,), (5, 3, 4), (5, 3, 4), (4,)]
    return [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]


def test_rows_may_leave_and_a_graph_may_be_differentiated_twice():
    queries = [torch.randn(rows, 4) for rows in (5, 5, 3, 1)]
    plain, ours = leaves(), leaves()
    expected = loop(PLAIN, *plain, queries)
    found = loop(LoopProducts(), *ours, queries)
    torch.testing.assert_close(found, expected)
    for part in (slice(None), slice(2), slice(None)):
        for out, tensors in ((expected, plain), (found, ours)):
            for tensor in tensors:
                tensor.grad = None
            out[part].sum().backward(retain_graph=True)
        for mine, its in zip(ours, plain, strict=True):
            torch.testing.assert_close(mine.grad, its.grad)


def test_gradients_of_some_leaves_alone_leave_nothing_behind():
    queries = [torch.randn(rows, 4).requires_grad_() for rows in (3, 2)]
    plain, ours = leaves(), leaves()
    expected = loop(PLAIN, *plain, queries).sum()
    found = loop(LoopProducts(), *ours, queries).sum()
    torch.autograd.grad(found, queries, retain_graph=True)
    found.backward()
    expected.backward()
    for mine, its in zip(ours, plain, strict=True):
        torch.testing.assert_close(mine.grad, its.grad)


def test_frozen_weights_get_no_gradient():
    tensors = leaves()
    for tensor in tensors[:2]:
        tensor.requires_grad_(False)
    loop(LoopProducts(), *tensors, [torch.randn(2, 4)] * 2).sum().backward()
    assert [tensor.grad is None for tensor in tensors] == [True, True, False, False, False]
