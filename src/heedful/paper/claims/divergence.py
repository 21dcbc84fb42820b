"""The effective number of different heads in a layer."""

import numpy as np
from jaxtyping import Float


def different_heads(weights: Float[np.ndarray, "heads queries keys"]) -> float:
    """
    Compute the effective number of different heads in a layer.

    It is 1 if all heads have the same weights, and the number of heads if no two heads attend to
    the same key. It is 2 to the power of D, where D is the heads' Jensen-Shannon divergence in
    bits, averaged over queries.
    """
    together = entropy(weights.mean(axis=0)) - entropy(weights).mean(axis=0)  # (queries,)
    return float(2 ** together.mean())


def entropy(weights: Float[np.ndarray, "*rows keys"]) -> Float[np.ndarray, "*rows"]:
    """Compute the entropy of each row in bits; 0 log 0 is 0."""
    tiny = np.finfo(np.float64).tiny
    return -(weights * np.log2(np.maximum(weights, tiny))).sum(axis=-1)
