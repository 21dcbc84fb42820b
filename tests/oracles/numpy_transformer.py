"""
A Transformer in NumPy: the reference where the original toolkit cannot be installed.

It reads tensors under the toolkit's names and in its order of ids, and shares nothing with
`heedful.model`. It is written to be read, not to be fast, but it caches keys and values.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from heedful.exchange.transformer import TensorNames

Array = NDArray[np.floating]
Past = list[tuple[Array, Array]]


@dataclass(frozen=True)
class NumpyTransformer:
    """A Transformer in NumPy with a toolkit's tensors."""

    tensors: Mapping[str, Array]
    """By their names."""
    tensor_names: TensorNames
    layers: tuple[int, int]
    heads: tuple[int, int]
    """For encoder and decoder."""
    norms: tuple[str, str]
    """Of encoder and decoder: ``post``, ``pre`` or ``pre-no-final`` (no norm at the end)."""
    epsilon: float
    """Added to the variance in a norm."""
    activation: Callable[[Array], Array]
    """Between the products of a feed-forward network."""
    scales: tuple[float, float]
    """Factors of the source and target embeddings."""
    positions: Callable[[str, int, int], Array]
    """From “source” or “target”, first position and count to the rows that are added."""
    embedding_norms: tuple[str, str] | None = None
    """Norms of the sum of embedding and position, of source and target; None for none."""

    def encode(self, source: Sequence[int]) -> Array:
        """Encode a source (section 3.1): their ids, with the end symbol if they have it."""
        names, kind = self.tensor_names, self.norms[0]
        x = self.tensors[names.source_table][list(source)] * self.scales[0]
        x = self._embedded(0, x + self.positions("source", 0, len(source)))
        for layer in map(names.encoder_layer.format, range(self.layers[0])):
            own, last = (f"{layer}.{norm}" for norm in names.encoder_norms)

            def look(y: Array, layer: str = layer) -> Array:
                at = f"{layer}.{names.encoder_self}"
                return self._mix(
                    at, self.heads[0], self._part(at, names.query, y), *self._offer(at, y)
                )

            x = self._residual(x, own, kind, look)
            x = self._residual(x, last, kind, partial(self._feed, layer))
        return self._norm(names.encoder_norm, x) if kind == "pre" else x

    def step(
        self, memory: Sequence[tuple[Array, Array]], past: Past, tokens: Sequence[int], at: int
    ) -> tuple[Array, Past]:
        """Process one token of several hypotheses. Section 3.1 of the paper."""
        names, kind = self.tensor_names, self.norms[1]
        x = self.tensors[names.target_table][list(tokens)] * self.scales[1]
        x = self._embedded(1, x + self.positions("target", at, 1))[:, None]
        newer: Past = []
        for number, layer in enumerate(map(names.decoder_layer.format, range(self.layers[1]))):
            norms = [f"{layer}.{norm}" for norm in names.decoder_norms]

            def self_attend(y: Array, layer: str = layer, number: int = number) -> Array:
                place = f"{layer}.{names.decoder_self}"
                keys, values = self._offer(place, y)
                if past:
                    keys = np.concatenate((past[number][0], keys), axis=1)
                    values = np.concatenate((past[number][1], values), axis=1)
                newer.append((keys, values))
                queries = self._part(place, names.query, y)
                return self._mix(place, self.heads[1], queries, keys, values)

            def look_across(y: Array, layer: str = layer, number: int = number) -> Array:
                place = f"{layer}.{names.cross}"
                queries = self._part(place, names.query, y)
                return self._mix(place, self.heads[1], queries, *memory[number])

            x = self._residual(x, norms[0], kind, self_attend)
            x = self._residual(x, norms[1], kind, look_across)
            x = self._residual(x, norms[2], kind, partial(self._feed, layer))
        x = self._norm(names.decoder_norm, x) if kind == "pre" else x
        return self._log_softmax(x[:, 0]), newer

    def offer_memory(self, states: Array) -> list[tuple[Array, Array]]:
        """Project the memory to keys and values of each decoder layer, once per sentence."""
        names = self.tensor_names
        return [
            self._offer(f"{layer}.{names.cross}", states)
            for layer in map(names.decoder_layer.format, range(self.layers[1]))
        ]

    def _embedded(self, side: int, x: Array) -> Array:
        """Apply the norm of a side's embeddings, if it has one."""
        return self._norm(self.embedding_norms[side], x) if self.embedding_norms else x

    def _product(self, name: str, x: Array) -> Array:
        """Multiply by a weight stored as (out, in), and add the bias if there is one."""
        out: Array = x @ self.tensors[f"{name}.weight"].T
        bias = self.tensors.get(f"{name}.bias")
        return out if bias is None else out + bias

    def _part(self, attention: str, part: str, x: Array) -> Array:
        """Compute queries, keys or values."""
        return self._product(f"{attention}.{part}", x)

    def _offer(self, attention: str, x: Array) -> tuple[Array, Array]:
        """Compute keys and values."""
        return (
            self._part(attention, self.tensor_names.key, x),
            self._part(attention, self.tensor_names.value, x),
        )

    def _mix(self, attention: str, heads: int, query: Array, keys: Array, values: Array) -> Array:
        """Compute multi-head attention (section 3.2.2)."""
        width = query.shape[-1] // heads
        context = np.empty_like(query)
        for head in range(heads):
            part = slice(head * width, (head + 1) * width)
            scores = query[..., part] @ np.swapaxes(keys[..., part], -1, -2) / math.sqrt(width)
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            context[..., part] = (weights / weights.sum(axis=-1, keepdims=True)) @ values[..., part]
        return self._part(attention, self.tensor_names.mixed, context)

    def _feed(self, layer: str, x: Array) -> Array:
        """Compute the feed-forward network (section 3.3)."""
        inner = self._product(f"{layer}.{self.tensor_names.linear1}", x)
        return self._product(f"{layer}.{self.tensor_names.linear2}", self.activation(inner))

    def _residual(
        self, x: Array, norm: str, kind: str, sublayer: Callable[[Array], Array]
    ) -> Array:
        """Apply residual connection and norm to a sub-layer."""
        if kind == "post":
            return self._norm(norm, x + sublayer(x))
        return x + sublayer(self._norm(norm, x))

    def _norm(self, name: str, x: Array) -> Array:
        """Normalize by the biased variance."""
        middle = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt((middle**2).mean(axis=-1, keepdims=True) + self.epsilon)
        out: Array = middle / spread * self.tensors[f"{name}.weight"]
        return out + self.tensors[f"{name}.bias"]

    def _log_softmax(self, x: Array) -> Array:
        """Compute log-probabilities from states."""
        names = self.tensor_names
        logits = x @ self.tensors[names.output_embedding].T
        if names.output_bias in self.tensors:
            logits = logits + self.tensors[names.output_bias]
        logits = logits - logits.max(axis=-1, keepdims=True)
        out: Array = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        return out


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


def _gelu(x: Array) -> Array:
    error = np.vectorize(math.erf, otypes=[np.float64])(x.astype(np.float64) / math.sqrt(2))
    return (x * (1 + error) / 2).astype(x.dtype)


def _gelu_tanh(x: Array) -> Array:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return x * (1 + np.tanh(inner)) / 2


def _silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def _interleaved(first: int, count: int, width: int) -> Array:
    table = np.zeros((count, width))
    for column in range(0, width, 2):
        angle = np.arange(first, first + count) / 10000 ** (column / width)
        table[:, column], table[:, column + 1] = np.sin(angle), np.cos(angle)
    return table.astype(np.float32)


def _halves(first: int, count: int, width: int) -> Array:
    half = width // 2
    table = np.zeros((count, width))
    for column in range(half):
        angle = np.arange(first, first + count) * 10000 ** (-column / max(half - 1, 1))
        table[:, column], table[:, half + column] = np.sin(angle), np.cos(angle)
    return table.astype(np.float32)


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": _relu,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": _silu,
}
LAYOUTS: dict[str, Callable[[int, int, int], Array]] = {
    "interleaved": _interleaved,
    "halves": _halves,
}
