"""
Scaling of dot products by the square root of d_k (section 3.2.1).

According to the paper, q.k has variance d_k if the components of q and k are independent with mean
0 and variance 1. Large products push “the softmax function into regions where it has extremely
small gradients”. Both are measured here with random queries and keys, and compared with theory. A
third measurement shows why the scale is 1/sqrt(d_k) and not 1/d_k.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from heedful.experiments.estimate import Estimate

SCALES = {
    "none": lambda d_k: 1.0,
    "1/sqrt(d_k)": lambda d_k: 1.0 / math.sqrt(d_k),
    "1/d_k": lambda d_k: 1.0 / d_k,
}
"""The factor by which q.k is multiplied before the softmax."""

_REPEATS = 20


@dataclass(frozen=True)
class Point:
    """
    The measurements for one width and one scale.

    The trace of the softmax's Jacobian is largest, 1 - 1/keys, if all weights are equal. It is 0 if
    one key has all the weight.
    """

    d_k: int
    """Width of queries and keys."""
    scale: str
    """A key of `SCALES`."""
    variance: Estimate
    """Variance of the scaled products."""
    variance_theory: float
    """Variance in theory: the square of the scale, times d_k."""
    gradient: Estimate
    """Mean trace of the softmax's Jacobian, the sum of p (1 - p) over the keys."""
    gradient_theory: float
    """Expectation of the trace (`expected_gradient`)."""
    reach: Estimate
    """Median norm of the derivatives of all weights with respect to the query."""


def widths(largest: int) -> list[int]:
    """
    List the widths to measure.

    The paper's values of d_k are 16 to 512 (Table 3).

    >>> widths(6)
    [1, 2, 4, 6]
    """
    return [*(2**power for power in range(largest.bit_length()) if 2**power < largest), largest]


def measure(d_k: int, keys: int, queries: int, seed: int) -> list[Point]:
    """
    Measure dot products of random queries and keys of one width.

    `keys`: number of keys per query, at least 2.

    Components are independent, as the paper's footnote assumes, and normally distributed. They are
    drawn in single precision; results are computed in double precision.
    """
    random = np.random.default_rng((seed, d_k))
    per_repeat = max(2, -(-queries // _REPEATS))
    samples: dict[str, list[tuple[float, float, float]]] = {name: [] for name in SCALES}
    for _ in range(_REPEATS):
        query = random.standard_normal((per_repeat, d_k), dtype=np.float32)
        key = random.standard_normal((per_repeat, keys, d_k), dtype=np.float32)
        for name, scale in SCALES.items():
            samples[name].append(measure_attention(query, key, scale(d_k)))
    return [
        Point(
            d_k,
            name,
            Estimate.of([variance for variance, _, _ in samples[name]]),
            scale(d_k) ** 2 * d_k,
            Estimate.of([gradient for _, gradient, _ in samples[name]]),
            expected_gradient(d_k, scale(d_k), keys),
            Estimate.of([reach for _, _, reach in samples[name]]),
        )
        for name, scale in SCALES.items()
    ]


def measure_attention(
    query: Float[np.ndarray, "queries d_k"],
    key: Float[np.ndarray, "queries keys d_k"],
    scale: float,
) -> tuple[float, float, float]:
    """Return the scores' variance, the Jacobian's mean trace, and the median gradient norm."""
    # The Jacobian of the softmax is diag(p) - p p^T, so the derivatives with respect to the query
    # are scale x p_j (k_j - sum of p_i k_i).
    scores = np.einsum("qd,qkd->qk", query, key, dtype=np.float64) * scale
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = powers / powers.sum(axis=1, keepdims=True)
    mean_key = np.einsum("qk,qkd->qd", weights, key)
    reach = scale * np.linalg.norm(weights[:, :, None] * (key - mean_key[:, None]), axis=(1, 2))
    trace = (weights * (1 - weights)).sum(axis=1)
    return float(scores.var()), float(trace.mean()), float(np.median(reach))


def expected_gradient(d_k: int, scale: float, keys: int) -> float:
    """
    Compute the expectation of the trace of the softmax's Jacobian.

    `keys`: number of keys, at least 2.

    The result is exact except for numerical quadrature. For n keys, the expected trace is n (n - 1)
    times the expectation of p_1 p_2. Given the length r of the query, products are independent and
    normal with standard deviation s = scale x r. The inverse square of the softmax's denominator z
    is the integral of u exp(-u z) over u, with u = exp(y). This gives::

        n (n - 1) E_r integral A(y)^2 B(y)^(n-2) dy,
            A(y) = E exp(y + s g) exp(-exp(y + s g)),   B(y) = E exp(-exp(y + s g)),

    where g is standard normal. All integrands are smooth and vanish at both ends, so sums over
    equal steps converge faster than any power of the step.
    """
    log_length, share = _lengths(d_k)
    traces = [_trace(scale * math.exp(logarithm), keys) for logarithm in log_length.tolist()]
    return float(np.dot(share, traces))


def _lengths(d_k: int) -> tuple[Float[np.ndarray, " nodes"], Float[np.ndarray, " nodes"]]:
    """Return logarithms of the length of a standard normal vector, with their probabilities."""
    center = 0.5 * math.log(d_k)
    wide = np.linspace(center - 40, center + 4, 44_001)
    density = d_k * wide - np.exp(2 * wide) / 2
    support = wide[density > density.max() - 32]
    nodes = np.linspace(support[0], support[-1], 97 if d_k < 8 else 33 if d_k < 64 else 17)
    share = np.exp(d_k * nodes - np.exp(2 * nodes) / 2 - density.max())
    return nodes, share / share.sum()


def _trace(deviation: float, keys: int) -> float:
    """Compute the expected trace for products with standard deviation `deviation`."""
    step = 0.4 * min(1.0, 1.0 / deviation)
    normal = np.arange(-8.5, 8.5 + step, step)
    share = np.exp(-(normal**2) / 2)
    share /= share.sum()
    far = 8.5 * deviation
    places = np.arange(-far - math.log(keys) - 20, far + 5, 0.3)
    # The exponent is capped at 700 to avoid overflow; exp(-x) is 0 for much smaller x.
    powers = np.exp(np.minimum(places[:, None] + deviation * normal[None], 700.0))
    none = np.exp(-powers)
    a, b = (powers * none) @ share, none @ share
    return float(keys * (keys - 1) * 0.3 * (a**2 * b ** (keys - 2)).sum())
