"""Products of queries and keys, and the softmax of them, against theory and torch."""

import math

import numpy as np
import pytest
import torch

from heedful.model.attention import scaled_dot_product_attention
from heedful.paper.scaling import (
    SCALES,
    expected_gradient,
    measure,
    measure_attention,
    widths,
)


def two_keys(d_k, scale):
    """
    Compute the expectation for two keys in another way.

    The difference of two products has the characteristic function (1 + 2 s^2 t^2)^(-d/2), and the
    Fourier transform of p (1 - p) over it is pi t / sinh(pi t); their product, integrated.
    """
    step = 0.0005
    t = np.arange(step / 2, 12, step)
    characteristic = (1 + 2 * (scale * t) ** 2) ** (-d_k / 2)
    transform = math.pi * t / np.sinh(math.pi * t)
    return 2 * (characteristic * transform).sum() * step / math.pi


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("d_k", [1, 2, 7, 8, 63, 64, 1024])
def test_theory_for_two_keys_agrees_with_its_other_form(d_k, scale):
    factor = SCALES[scale](d_k)
    assert expected_gradient(d_k, factor, 2) == pytest.approx(two_keys(d_k, factor), rel=2e-5)


def test_theory_meets_its_limits():
    assert expected_gradient(64, 1e-6, 16) == pytest.approx(15 / 16, rel=1e-6)
    # Without a scale the gradient vanishes like 1 / sqrt(d_k).
    ratio = expected_gradient(100, 1.0, 2) / expected_gradient(400, 1.0, 2)
    assert ratio == pytest.approx(2, rel=0.02)
    # With it, nothing changes any more.
    assert expected_gradient(400, 1 / 20, 16) == pytest.approx(
        expected_gradient(100, 1 / 10, 16), rel=1e-3
    )


@pytest.mark.parametrize("keys", [3, 16])
@pytest.mark.parametrize(("d_k", "scale"), [(1, 1.0), (16, 1.0), (16, 0.25), (100, 1.0)])
def test_theory_for_more_keys_agrees_with_drawing(keys, d_k, scale):
    random = np.random.default_rng(3)
    query = random.standard_normal((20_000, d_k))
    length = np.linalg.norm(query, axis=1)
    # Given the query, products are independent and normal.
    scores = scale * length[:, None] * random.standard_normal((20_000, keys))
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = powers / powers.sum(axis=1, keepdims=True)
    traces = 1 - (weights**2).sum(axis=1)
    error = traces.std() / math.sqrt(len(traces))
    assert expected_gradient(d_k, scale, keys) == pytest.approx(traces.mean(), abs=4 * error)


def test_a_look_is_what_the_models_attention_and_its_gradients_give():
    random = np.random.default_rng(5)
    query, key = random.standard_normal((6, 9)), random.standard_normal((6, 4, 9))
    traces, reaches, scores = [], [], []
    for one, own in zip(query, key, strict=True):
        asked = torch.tensor(one)[None, None, None].requires_grad_()
        keys = torch.tensor(own)[None, None]
        _, weights = scaled_dot_product_attention(asked, keys, keys)
        weights = weights.flatten()
        gradients = [torch.autograd.grad(w, asked, retain_graph=True)[0].flatten() for w in weights]
        reaches.append(float(torch.stack(gradients).norm()))
        score = torch.tensor(own @ one / 3, requires_grad=True)
        jacobian = torch.autograd.functional.jacobian(lambda x: torch.softmax(x, 0), score)
        traces.append(float(jacobian.trace()))
        scores += score.tolist()
    variance, gradient, reach = measure_attention(query, key, 1 / 3)
    assert variance == pytest.approx(np.var(scores))
    assert gradient == pytest.approx(np.mean(traces))
    assert reach == pytest.approx(np.median(reaches))


@pytest.mark.parametrize("d_k", [1, 64])
def test_measurements_lie_where_theory_expects_them(d_k):
    for point in measure(d_k, keys=16, queries=4000, seed=1):
        assert point.variance_theory == pytest.approx(d_k * SCALES[point.scale](d_k) ** 2)
        for measured, theory in (
            (point.variance, point.variance_theory),
            (point.gradient, point.gradient_theory),
        ):
            assert abs(measured.value - theory) < 2 * measured.margin


def test_the_same_seed_gives_the_same_numbers():
    assert measure(4, 3, 40, seed=2) == measure(4, 3, 40, seed=2)
    assert measure(4, 3, 40, seed=2) != measure(4, 3, 40, seed=3)


def test_widths_are_powers_of_two_and_the_largest():
    assert widths(1) == [1]
    assert widths(1024) == [2**power for power in range(11)]
    assert widths(1000)[-2:] == [512, 1000]
