"""Fastformer in NumPy, one sentence at a time and number by number, from Wu et al. (2021)."""

import numpy as np
from torch import Tensor

Weights = dict[str, np.ndarray]


def as_numpy(state: dict[str, Tensor]) -> Weights:
    """Convert a layer's weights to double precision."""
    return {name: tensor.double().numpy() for name, tensor in state.items()}


def fastformer(x: np.ndarray, weights: Weights, heads: int, causal: bool) -> np.ndarray:
    """Compute the layer for states (time, d_model); `causal`: the linear variant."""
    query, key = _linear(x, weights, "query_proj"), _linear(x, weights, "key_proj")
    pool = _prefix_means if causal else _mean
    product = pool(query, _linear(query, weights, "query_score"), heads) * key
    pooled = pool(product, _linear(product, weights, "key_score"), heads)
    return _linear(pooled * query, weights, "out_proj") + query


def _linear(x: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    bias = weights.get(f"{name}.bias", 0.0)
    return np.einsum("ti,oi->to", x, weights[f"{name}.weight"]) + bias


def _mean(vectors: np.ndarray, scores: np.ndarray, heads: int) -> np.ndarray:
    """One mean of all positions, by softmax weights, one a head; shape (1, d_model)."""
    width = vectors.shape[1] // heads
    means = []
    for head in range(heads):
        score = scores[:, head] / np.sqrt(width)
        weight = np.exp(score - score.max())
        part = vectors[:, head * width : (head + 1) * width]
        means.append((weight / weight.sum()) @ part)
    return np.concatenate(means)[None]


def _prefix_means(vectors: np.ndarray, scores: np.ndarray, heads: int) -> np.ndarray:
    """The mean of each position and all before it, each by itself; shape (time, d_model)."""
    return np.concatenate(
        [_mean(vectors[: end + 1], scores[: end + 1], heads) for end in range(len(vectors))]
    )
