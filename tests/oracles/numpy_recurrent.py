"""
Joey NMT's recurrent model in NumPy: the reference of the parity check.

Written after encoders.py, decoders.py and attention.py of version 2.3.0, by their tensor names and
in their order of ids. It shares nothing with `heedful.model`: cells are written gate by gate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tests.oracles.numpy_transformer import Past

Array = NDArray[np.floating]


@dataclass(frozen=True)
class NumpyRecurrent:
    """A bidirectional encoder and a decoder with attention, with Joey NMT's tensors."""

    tensors: Mapping[str, Array]
    """By their names."""
    cell: Literal["gru", "lstm"]
    layers: tuple[int, int]
    """Of encoder and decoder."""
    scales: tuple[float, float]
    """Factors of the source and target embeddings."""
    attention: Literal["bahdanau", "luong"]
    start: Literal["bridge", "last", "zero"]
    """First state of every decoder layer, of h and c alike."""
    input_feeding: bool
    """Whether a step reads the last attention vector beside its embedding."""

    def encode(self, source: Sequence[int]) -> Array:
        """Encode a source. `source`: their ids, the end symbol included."""
        x = self.tensors["src_embed.lut.weight"][list(source)] * self.scales[0]
        for layer in range(self.layers[0]):
            forward = self._read(x, f"l{layer}")
            backward = self._read(x[::-1], f"l{layer}_reverse")[::-1]
            x = np.concatenate((forward, backward), axis=1)
        return x

    def offer_memory(self, states: Array) -> list[tuple[Array, Array]]:
        """Return keys and values, and the first state of the decoder."""
        keys = states @ self.tensors["decoder.attention.key_layer.weight"].T
        half, width = states.shape[1] // 2, self._width
        final = np.concatenate((states[-1:, :half], states[:1, half:]), axis=1)
        first = np.zeros((1, width), states.dtype)
        if self.start == "bridge":
            first = np.tanh(self._product("decoder.bridge_layer", final))
        elif self.start == "last":
            first = final[:, :width]
        return [(keys, states), (first, first)]

    def step(
        self, memory: Sequence[tuple[Array, Array]], past: Past, tokens: Sequence[int], at: int
    ) -> tuple[Array, Past]:
        """Process one token of several hypotheses; `at` does not matter here."""
        (keys, values), first = memory
        zero = np.zeros((len(tokens), self._width), keys.dtype)
        *states, (fed, _) = past or [*[first] * self.layers[1], (zero, zero)]
        x = self.tensors["trg_embed.lut.weight"][list(tokens)] * self.scales[1]
        if self.input_feeding:
            x = np.concatenate((x, fed), axis=1)
        newer: Past = []
        for layer, state in enumerate(states):
            newer.append(self._cell("decoder.rnn", f"l{layer}", x, state))
            x = newer[-1][0]
        context = self._weights(x, keys) @ values
        seen = np.concatenate((x, context), axis=1)
        vector = np.tanh(self._product("decoder.att_vector_layer", seen))
        logits = vector @ self.tensors["decoder.output_layer.weight"].T
        logits = logits - logits.max(axis=1, keepdims=True)
        scores: Array = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return scores, [*newer, (vector, vector)]

    @property
    def _width(self) -> int:
        """Width of the decoder's states."""
        return len(self.tensors["decoder.att_vector_layer.bias"])

    def _weights(self, query: Array, keys: Array) -> Array:
        """Compute the weights of each source token, shape (hypotheses, source)."""
        scores = query @ keys.T if self.attention == "luong" else self._energies(query, keys)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        normalized: Array = weights / weights.sum(axis=1, keepdims=True)
        return normalized

    def _energies(self, query: Array, keys: Array) -> Array:
        """Compute Bahdanau's scores."""
        queries = self._product("decoder.attention.query_layer", query)
        inner = np.tanh(queries[:, None] + keys[None])
        return self._product("decoder.attention.energy_layer", inner)[..., 0]

    def _read(self, x: Array, end: str) -> Array:
        """Read a source in one direction, from a zero state."""
        width = self.tensors[f"encoder.rnn.weight_hh_{end}"].shape[1]
        state = (np.zeros((1, width), x.dtype),) * 2
        states = []
        for row in x:
            state = self._cell("encoder.rnn", end, row[None], state)
            states.append(state[0])
        return np.concatenate(states)

    def _cell(
        self, rnn: str, end: str, x: Array, state: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        """Compute the next h and c, as the documentation of torch.nn.LSTM and GRU says."""
        h, c = state
        inputs, hidden = (
            y @ self.tensors[f"{rnn}.weight_{kind}_{end}"].T
            + self.tensors[f"{rnn}.bias_{kind}_{end}"]
            for kind, y in (("ih", x), ("hh", h))
        )
        if self.cell == "lstm":
            i, f, g, o = np.split(inputs + hidden, 4, axis=1)
            c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
            return _sigmoid(o) * np.tanh(c), c
        (r, z, n), (hidden_r, hidden_z, hidden_n) = (
            np.split(y, 3, axis=1) for y in (inputs, hidden)
        )
        new = np.tanh(n + _sigmoid(r + hidden_r) * hidden_n)
        update = _sigmoid(z + hidden_z)
        h = (1 - update) * new + update * h
        return h, h

    def _product(self, name: str, x: Array) -> Array:
        """Multiply by a weight stored as (out, in), and add the bias if there is one."""
        out: Array = x @ self.tensors[f"{name}.weight"].T
        bias = self.tensors.get(f"{name}.bias")
        return out if bias is None else out + bias


def _sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow."""
    return (1 + np.tanh(x / 2)) / 2
