"""
Summaries of attention weights: means, rollout, and measures of each head.

The functions take and return arrays; every row of weights sums to one. Rollout (Abnar and Zuidema
2020, “Quantifying Attention Flow in Transformers”) estimates how much of each token reaches a
position through all layers. Half of a layer's input passes through the residual connection, and
half through attention:

::

    A_l = (W_l + 1) / 2        W_l: mean of the heads
    R   = A_L ... A_2 A_1

A decoder layer attends twice, once to its own prefix and once to the source.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np

# Share of a state that comes through the residual connection (Abnar and Zuidema's choice).
_KEPT = 0.5


def mean_of_heads(weights: np.ndarray) -> np.ndarray:
    """Average the heads of each layer."""
    return cast("np.ndarray", weights.mean(axis=1))


def rollout(weights: np.ndarray) -> np.ndarray:
    """Compute attention rollout through all layers."""
    # This is equation 1 of Abnar and Zuidema, which ignores feed-forward networks.
    flow = np.eye(weights.shape[-1])
    for layer in mean_of_heads(weights):
        flow = _KEPT * flow + (1 - _KEPT) * layer @ flow
    return flow


def rollout_of_decoder(
    encoder: np.ndarray, decoder: np.ndarray, cross: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Compute attention rollout through a decoder, to the source and to its own prefix."""
    # Abnar and Zuidema do not define rollout for decoders. Here, each of the two attention layers
    # of a decoder layer is one step of their formula. Rows of both results together sum to one.
    memory = rollout(encoder)
    written, read = np.eye(decoder.shape[-1]), np.zeros(cross.shape[-2:])
    for own, source_weights in zip(mean_of_heads(decoder), mean_of_heads(cross), strict=True):
        written = _KEPT * written + (1 - _KEPT) * own @ written
        read = _KEPT * read + (1 - _KEPT) * own @ read
        written = _KEPT * written
        read = _KEPT * read + (1 - _KEPT) * source_weights @ memory
    return written, read


@dataclass(frozen=True)
class HeadMeasure:
    """
    Measures of one head.

    In cross-attention, positions are counted from the beginning of each text.
    """

    layer: int
    head: int
    """Index of the head in its layer; heads and layers are counted from 1."""
    entropy: float
    """
    Mean entropy of the rows, in bits: 0 for attention to one token, 3 for equal attention to eight.
    """
    largest: float
    """Largest weight of a row, averaged over all rows."""
    distance: float
    """Mean distance of attention, in positions."""
    offset: float
    """Mean signed distance: negative for earlier positions."""


def measure_heads(weights: np.ndarray) -> list[HeadMeasure]:
    """Compute the measures of every head of every layer."""
    # Decoder self-attention does not see later positions, so the first row of every head has an
    # entropy of zero.
    logarithms = np.log2(weights, out=np.zeros(weights.shape), where=weights > 0)
    entropy = -(weights * logarithms).sum(axis=-1).mean(axis=-1)
    largest = weights.max(axis=-1).mean(axis=-1)
    steps = np.arange(weights.shape[-1]) - np.arange(weights.shape[-2])[:, None]
    offset = (weights * steps).sum(axis=-1).mean(axis=-1)
    distance = (weights * abs(steps)).sum(axis=-1).mean(axis=-1)
    measures = (entropy, largest, distance, offset)
    return [
        HeadMeasure(layer + 1, head + 1, *(float(measure[layer, head]) for measure in measures))
        for layer, head in np.ndindex(weights.shape[:2])
    ]
