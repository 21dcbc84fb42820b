"""How much two heads differ in what they attend to."""

import numpy as np
from jaxtyping import Float


def divergence(
    first: Float[np.ndarray, "queries keys"], second: Float[np.ndarray, "queries keys"]
) -> float:
    """Compute the mean Jensen-Shannon divergence of two heads' rows in bits."""
    middle = (first + second) / 2
    return float(np.mean([_kl(first, middle), _kl(second, middle)]))


def _kl(first: np.ndarray, second: np.ndarray) -> float:
    """Compute the mean Kullback-Leibler divergence in bits; 0 log 0 is 0."""
    tiny = np.finfo(np.float64).tiny
    ratios = np.log2(np.maximum(first, tiny) / np.maximum(second, tiny))
    return float((first * ratios).sum(axis=-1).mean())
