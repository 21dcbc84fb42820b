"""Fastformer against its equations, and the causal variant against a quadratic twin."""

import pytest
import torch

from heedful.config.attention import AttentionConfig
from heedful.model.build import parameter_count
from heedful.model.fastformer import CausalFastformer, Fastformer
from heedful.model.initialise import initialise
from heedful.model.layout import Layout, unpad
from tests.support.models import batch, small

REAL = torch.arange(9) < torch.tensor([[9], [4], [1]])


def pooled(scorer, x, heads, real):
    """One softmax mean a head, number by number."""
    scores = scorer(x) / (x.size(1) // heads) ** 0.5  # (time, heads)
    weights = torch.softmax(scores[real], dim=0)
    parts = x[real].chunk(heads, dim=1)
    return torch.cat([(w[:, None] * part).sum(0) for w, part in zip(weights.T, parts, strict=True)])


def test_it_is_the_equations_over_real_positions():
    torch.manual_seed(1)
    layer, x = Fastformer(16, 2), torch.randn(3, 9, 16)
    found, nothing = layer(x, x, REAL[:, None, None])
    assert nothing is None
    for row, real in enumerate(REAL):
        query, key = layer.query_proj(x[row]), layer.key_proj(x[row])
        product = pooled(layer.query_score, query, 2, real) * key
        total = pooled(layer.key_score, product, 2, real)
        expected = layer.out_proj(total * query) + query
        torch.testing.assert_close(found[row, real], expected[real])
    short, packing = unpad(x, REAL, 9)
    assert packing is not None
    packed, _ = layer(short, short, Layout(REAL[:, None, None], packing, packing))
    torch.testing.assert_close(packing.unpack(packed)[REAL], found[REAL])


@pytest.mark.parametrize("length", [1, 5, 64, 150])
def test_the_causal_variant_is_its_quadratic_twin_in_value_and_gradient(length):
    torch.manual_seed(length)
    layer, x = CausalFastformer(16, 2), torch.randn(2, length, 16, requires_grad=True)

    def means(scorer, vectors):
        scores = (scorer(vectors) / 8**0.5).transpose(1, 2).unsqueeze(2)  # (batch, heads, 1, time)
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = torch.softmax(scores.masked_fill(hidden, float("-inf")), -1)
        split = vectors.unflatten(2, (2, 8)).transpose(1, 2)
        return (weights @ split).transpose(1, 2).flatten(2)

    query, key = layer.query_proj(x), layer.key_proj(x)
    product = means(layer.query_score, query) * key
    expected = layer.out_proj(means(layer.key_score, product) * query) + query
    found, _ = layer(x, x)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    leaves, pull = [x, *layer.parameters()], torch.randn(2, length, 16)
    ours = torch.autograd.grad(found, leaves, pull)
    for one, other in zip(ours, torch.autograd.grad(expected, leaves, pull), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)


def test_large_scores_stay_finite():
    layer, x = CausalFastformer(16, 2), 1e4 * torch.randn(1, 150, 16)
    x.requires_grad_()
    found, _ = layer(x, x)
    found.sum().backward()
    assert found.isfinite().all() and x.grad.isfinite().all()


def test_a_search_keeps_two_means_a_layer_and_hypothesis():
    model = small(attention=AttentionConfig(decoder="fastformer-linear"))
    source, target = batch()
    with torch.no_grad():
        whole = model(source, target)
        state = model.start(model.encode(source))
        out, state = model.step(state, target[:, 0])
        state = state.select(torch.tensor([0, 0, 1, 1, 2, 2]))
        tokens = torch.stack([target[:, 1], target[:, 2]], 1).flatten()
        kept = state
        out, state = model.step(state, tokens)
        torch.testing.assert_close(out[::2], whole[:, 1], atol=1e-5, rtol=1e-4)
        again, _ = model.step(kept, tokens)  # the state before is as it was
        assert again.equal(out)
        state = state.select(torch.tensor([4]), torch.tensor([2]))
        out, state = model.step(state, target[2:, 2])
        torch.testing.assert_close(out, whole[2:, 2], atol=1e-5, rtol=1e-4)
    for layer in state.cache.layers:
        assert [one.mean.shape for one in layer] == [(1, 1, 2, 8)] * 2
    assert model.attention(source, target).decoder == []
    assert model.decoder.flops().own_pair == 0


def test_its_weights_are_counted_and_drawn():
    model = small(attention=AttentionConfig(encoder="fastformer"))
    layer = model.encoder.layers[0].self_attention
    assert parameter_count(layer) == 3 * (16 * 16 + 16) + 2 * (2 * 16 + 2)
    first = [weight.clone() for weight in layer.parameters()]
    initialise(model, 1)
    assert all(map(torch.equal, first, layer.parameters()))
    assert layer.query_score.weight.abs().max() <= (6 / 18) ** 0.5
