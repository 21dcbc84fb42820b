"""Fastformer against its equations, and the causal variant against a quadratic twin."""

from functools import partial

import numpy as np
import pytest
import torch

from heedful.config.model import AttentionConfig
from heedful.errors import SettingError
from heedful.families.fastformer.mixer import CausalFastformer, Fastformer, RunningSums
from heedful.kernels.operations import observe_operations, tensors_in
from heedful.model.initialize import initialize
from heedful.model.layout import Layout, unpad
from heedful.model.weights import parameter_count
from tests.support.models import batch, small
from tests.support.numpy_fastformer import as_numpy, fastformer

REAL = torch.arange(9) < torch.tensor([[9], [4], [1]])


def test_it_is_the_equations_over_real_positions():
    torch.manual_seed(1)
    layer, x = Fastformer(16, 2), torch.randn(3, 9, 16)
    found, nothing = layer(x, x, REAL[:, None, None])
    assert nothing is None
    weights = as_numpy(layer.state_dict())
    for row, real in enumerate(REAL):
        expected = fastformer(x[row, real].double().numpy(), weights, 2, causal=False)
        np.testing.assert_allclose(found[row, real].detach(), expected, atol=1e-6)
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


@pytest.mark.parametrize("bias", [True, False])
def test_the_causal_variant_is_the_equations(bias):
    torch.manual_seed(2)
    layer, x = CausalFastformer(12, 3, bias), torch.randn(1, 70, 12)
    expected = fastformer(x[0].double().numpy(), as_numpy(layer.state_dict()), 3, causal=True)
    np.testing.assert_allclose(layer(x, x)[0][0].detach(), expected, atol=1e-6)


def test_two_thousand_positions_are_equal_step_by_step():
    torch.manual_seed(3)
    layer, x = CausalFastformer(16, 2), 3 * torch.randn(2, 2000, 16)
    with torch.no_grad():
        whole, _ = layer(x, x)
        sums, steps = RunningSums.empty(1, x), []
        for place in range(2000):
            sums = sums.advance(1)
            write = partial(sums.write, 0)
            steps.append(layer.step(x[:, place : place + 1], write, sums.mask_bias[:, None]))
    torch.testing.assert_close(torch.cat(steps, 1), whole, atol=1e-5, rtol=1e-5)


class _Largest:
    """Remembers the largest tensor that an operation returned."""

    numbers = 0

    def observe(self, function, arguments):
        args, kwargs = arguments
        out = function(*args, **kwargs)
        self.numbers = max(self.numbers, *(x.numel() for x in tensors_in(out)), 0)
        return out


def test_heads_must_divide_the_width():
    with pytest.raises(SettingError, match="`heads` must divide d_model=8"):
        Fastformer(8, 3)


@pytest.mark.parametrize("kind", [Fastformer, CausalFastformer])
def test_memory_grows_with_the_length_alone(kind):
    layer, found = kind(16, 2), []
    for length in (1024, 2048):
        saved = []
        x = torch.randn(1, length, 16, requires_grad=True)
        hooks = torch.autograd.graph.saved_tensors_hooks(
            lambda t, kept=saved: kept.append(t.numel()) or t, lambda t: t
        )
        largest = _Largest()
        with observe_operations(largest.observe), hooks:
            layer(x, x)
        found.append((largest.numbers, sum(saved)))
    (largest, saved), (largest_of_two, saved_of_two) = found
    assert largest_of_two <= 2.1 * largest and saved_of_two <= 2.1 * saved
    assert largest_of_two < 2048 * 2048 / 8  # far from pairs of positions


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
        whole = model.states(source, target)
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


def test_its_weights_are_counted_and_drawn():
    model = small(attention=AttentionConfig(encoder="fastformer"))
    layer = model.encoder.layers[0].self_attention
    assert parameter_count(layer) == 3 * (16 * 16 + 16) + 2 * (2 * 16 + 2)
    first = [weight.clone() for weight in layer.parameters()]
    initialize(model, 1)
    assert all(map(torch.equal, first, layer.parameters()))
    assert layer.query_score.weight.abs().max() <= (6 / 18) ** 0.5
