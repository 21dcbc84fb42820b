"""
What can be computed from attention weights: means, rollout, and measures of each head.

Arrays in, arrays out; every row of weights sums to one. Rollout (Abnar and Zuidema 2020,
“Quantifying Attention Flow in Transformers”) asks how much of each token has come to a position
through all layers: a layer hands on half of what it had, by its residual connection, and fills the
other half by what it attends to,

::

    A_l = (W_l + 1) / 2        W_l: mean of the heads
    R   = A_L ... A_2 A_1

A decoder layer does so twice, once for what is written and once for the source.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np

# What a sub-layer keeps through its residual connection.
_KEPT = 0.5


def mean_of_heads(weights: np.ndarray) -> np.ndarray:
    """
    Average the heads of each layer.

    Parameters
    ----------
    weights : ndarray of float, shape (layers, heads, queries, keys)
        Attention weights.

    Returns
    -------
    ndarray of float, shape (layers, queries, keys)
        Their rows sum to one like those of a head.

    Notes
    -----
    Heads count alike, though what they hand on differs in size.
    """
    return cast("np.ndarray", weights.mean(axis=1))


def rollout(weights: np.ndarray) -> np.ndarray:
    """
    Follow self-attention through all layers.

    Parameters
    ----------
    weights : ndarray of float, shape (layers, heads, time, time)
        Self-attention of a stack, the first layer first.

    Returns
    -------
    ndarray of float, shape (time, time)
        How much of each token (column) is in each state after the last layer (row).

    Notes
    -----
    Equation 1 of Abnar and Zuidema. What the feed-forward networks do is left out.
    """
    found = np.eye(weights.shape[-1])
    for layer in mean_of_heads(weights):
        found = _KEPT * found + (1 - _KEPT) * layer @ found
    return found


def rollout_of_decoder(
    encoder: np.ndarray, decoder: np.ndarray, cross: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """
    Follow the attention of a decoder through all layers, into the source and back in what it wrote.

    Parameters
    ----------
    encoder : ndarray of float, shape (layers, heads, source, source)
        Self-attention of the encoder.
    decoder : ndarray of float, shape (layers, heads, target, target)
        Masked self-attention of the decoder.
    cross : ndarray of float, shape (layers, heads, target, source)
        Attention of the decoder to the source.

    Returns
    -------
    decoder : ndarray of float, shape (target, target)
        How much of each token that the decoder has read is in each of its states.
    cross : ndarray of float, shape (target, source)
        How much of each token of the source.

    Notes
    -----
    Abnar and Zuidema have no decoder; here each of its two attentions is one more step of theirs.
    A row of both parts together sums to one.
    """
    memory = rollout(encoder)
    written, read = np.eye(decoder.shape[-1]), np.zeros(cross.shape[-2:])
    for own, other in zip(mean_of_heads(decoder), mean_of_heads(cross), strict=True):
        written = _KEPT * written + (1 - _KEPT) * own @ written
        read = _KEPT * read + (1 - _KEPT) * own @ read
        written = _KEPT * written
        read = _KEPT * read + (1 - _KEPT) * other @ memory
    return written, read


@dataclass(frozen=True)
class HeadMeasure:
    """
    Say in numbers how one head attends.

    Attributes
    ----------
    layer, head : int
        Which, counted from 1.
    entropy : float
        Mean over the rows, in bits: 0 if each token looks at one alone, 3 if it looks at eight
        alike.
    largest : float
        Mean over the rows of their largest weight.
    distance : float
        Mean number of places between a token and what it looks at.
    offset : float
        The same with a sign: below zero if it looks back.

    Notes
    -----
    In attention between two texts, places are counted in each from its beginning.
    """

    layer: int
    head: int
    entropy: float
    largest: float
    distance: float
    offset: float


def measure_heads(weights: np.ndarray) -> list[HeadMeasure]:
    """
    Measure every head of every layer.

    Parameters
    ----------
    weights : ndarray of float, shape (layers, heads, queries, keys)
        Attention weights of one kind.

    Returns
    -------
    list of HeadMeasure
        Layer by layer.

    Notes
    -----
    Rows of a decoder's own attention can see only what is before them: its first row has an entropy
    of zero whatever the head does.
    """
    logarithms = np.log2(weights, out=np.zeros(weights.shape), where=weights > 0)
    entropy = -(weights * logarithms).sum(axis=-1).mean(axis=-1)
    largest = weights.max(axis=-1).mean(axis=-1)
    steps = np.arange(weights.shape[-1]) - np.arange(weights.shape[-2])[:, None]
    offset = (weights * steps).sum(axis=-1).mean(axis=-1)
    distance = (weights * abs(steps)).sum(axis=-1).mean(axis=-1)
    measures = (entropy, largest, distance, offset)
    return [
        HeadMeasure(layer + 1, head + 1, *(float(each[layer, head]) for each in measures))
        for layer, head in np.ndindex(weights.shape[:2])
    ]
