"""
Old checkpoints in their documented layouts, and what their toolkits would compute with them.

Nothing here is shared with `heedful`: each toolkit's forward pass is written out in NumPy by the
toolkit's own names, in double precision, one sentence at a time.
"""

import math

import numpy as np


def softmax(x):
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def log_softmax(x):
    return (
        x
        - x.max(-1, keepdims=True)
        - np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True))
    )


def layer_norm(x, weight, bias, epsilon):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(
        x.var(-1, keepdims=True) + epsilon
    ) * weight + bias


def relu(x):
    return x * (x > 0)


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def gelu_by_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def swish(x):
    return x / (1 + np.exp(-x))


def attention(query, key, value, heads, causal=False):
    """Attend head by head on projected matrices of shape (time, width)."""
    width = query.shape[1] // heads
    found = []
    for h in range(heads):
        q, k, v = (x[:, h * width : (h + 1) * width] for x in (query, key, value))
        scores = q @ k.T / math.sqrt(width)
        if causal:
            scores = np.where(np.tri(*scores.shape, dtype=bool), scores, -np.inf)
        found.append(softmax(scores) @ v)
    return np.concatenate(found, axis=1)


def sines_then_cosines(positions, width):
    """The formula of tensor2tensor, which fairseq and OpenNMT-py's “Concat” share."""
    rates = np.exp(np.arange(width // 2) * -(math.log(10000) / (width // 2 - 1)))
    angles = np.array(positions)[:, None] * rates
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def sines_and_cosines_in_turn(positions, width):
    """The formula of the paper."""
    found = np.zeros((len(positions), width))
    rates = np.exp(np.arange(0, width, 2) * -(math.log(10000.0) / width))
    found[:, 0::2] = np.sin(np.array(positions)[:, None] * rates)
    found[:, 1::2] = np.cos(np.array(positions)[:, None] * rates)
    return found


class Drawn:
    """Tensors of random numbers, as a state dictionary collects them."""

    def __init__(self, seed=1):
        self.random, self.tensors = np.random.default_rng(seed), {}

    def matrix(self, name, rows, columns, scale=None):
        numbers = self.random.normal(0, scale or columns**-0.5, (rows, columns))
        self.tensors[name] = numbers.astype(np.float32)

    def vector(self, name, size, middle=0.0):
        self.tensors[name] = self.random.normal(middle, 0.3, size).astype(np.float32)

    def linear(self, name, rows, columns, bias=True):
        self.matrix(f"{name}.weight", rows, columns)
        if bias:
            self.vector(f"{name}.bias", rows)

    def norm(self, name, size):
        self.vector(f"{name}.weight", size, 1.0)
        self.vector(f"{name}.bias", size)
