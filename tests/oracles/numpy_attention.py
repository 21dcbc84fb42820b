"""
Attention with today's parts in NumPy, one pair of a query and a key after the other.

It follows the papers' equations by loops and shares nothing with `heedful.model`: rotary positions
(Su et al. 2021, equation 15, pairs as halves), vectors of distances (Shaw et al. 2018, equations 3
and 4), norms of queries and keys (as in Qwen3, before they turn).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


@dataclass(frozen=True)
class NumpyAttention:
    """Attention of one sentence, from plain matrices."""

    query: Array
    key: Array
    value: Array
    mixed: Array
    """W^Q, W^K, W^V and W^O, each (out, in)."""
    heads: int
    kv_heads: int | None = None
    """Heads of keys and values, if they are fewer."""
    rotary_base: float | None = None
    """Turns queries and keys of self-attention."""
    gains: tuple[Array, Array] | None = None
    """Of the norms of queries and keys by the root of the mean square, for a head."""
    epsilon: float = 0.0
    """Added to the mean square."""
    distance_vectors: tuple[Array, Array] | None = None
    """Added to keys and values, (2 K + 1, width) each; the middle one is of distance 0."""

    def __call__(self, queries_from: Array, keys_from: Array, causal: bool = False) -> Array:
        """Compute the states of all queries."""
        queries, kv_heads = self._by_head(queries_from @ self.query.T, self.heads), self.kv_heads
        keys, values = (
            self._by_head(keys_from @ part.T, kv_heads or self.heads)
            for part in (self.key, self.value)
        )
        contexts = []
        for i in range(len(queries_from)):
            for head in range(self.heads):
                seen = range(i + 1 if causal else len(keys_from))
                scores = [self._score(queries, keys, head, i, j) for j in seen]
                shares = np.exp(np.array(scores) - max(scores))
                shares /= shares.sum()
                contexts.append(
                    sum(
                        share * (values[self._of(head), j] + self._vector(1, i, j))
                        for share, j in zip(shares, seen, strict=True)
                    )
                )
        out: Array = np.array(contexts).reshape(len(queries_from), -1) @ self.mixed.T
        return out

    def _score(self, queries: Array, keys: Array, head: int, i: int, j: int) -> float:
        """Compute the score of query i and key j."""
        query, key = queries[head, i], keys[self._of(head), j]
        if self.gains is not None:
            query, key = self._normalized(query, 0), self._normalized(key, 1)
        if self.rotary_base is not None:
            query, key = self._turned(query, i), self._turned(key, j)
        key = key + self._vector(0, i, j)
        return float(query @ key) / math.sqrt(len(query))

    def _vector(self, which: int, i: int, j: int) -> Array | float:
        """Look up the vector of the distance of key j from query i."""
        if self.distance_vectors is None:
            return 0.0
        table = self.distance_vectors[which]
        most = len(table) // 2
        row: Array = table[max(-most, min(most, j - i)) + most]
        return row

    def _normalized(self, x: Array, which: int) -> Array:
        """Divide by the root of the mean square."""
        assert self.gains is not None
        mean = sum(number**2 for number in x) / len(x)
        out: Array = x / math.sqrt(mean + self.epsilon) * self.gains[which]
        return out

    def _turned(self, x: Array, position: int) -> Array:
        """Turn pairs of numbers, as points of a plane, by multiplying complex numbers."""
        half, base = len(x) // 2, self.rotary_base
        assert base is not None
        turned = np.empty_like(x)
        for j in range(half):
            point = complex(x[j], x[half + j]) * np.exp(1j * position * base ** (-2 * j / len(x)))
            turned[j], turned[half + j] = point.real, point.imag
        return turned

    def _of(self, head: int) -> int:
        """Find the head of keys and values that a head of queries has."""
        return head if self.kv_heads is None else head * self.kv_heads // self.heads

    def _by_head(self, x: Array, heads: int) -> Array:
        """Split into heads: (heads, time, width)."""
        return x.reshape(len(x), heads, -1).transpose(1, 0, 2)
