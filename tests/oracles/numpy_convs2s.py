"""
fairseq's convolutional model in NumPy: the reference of the parity check.

Written after fairseq/models/fconv.py at 3d262bb2, by its tensor names and in its order of ids. It
shares nothing with `heedful.model`: a convolution is a sum over shifts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.oracles.numpy_transformer import Past

Array = NDArray[np.floating]
_ROOT_HALF = np.sqrt(0.5)


@dataclass(frozen=True)
class NumpyConvS2S:
    """An encoder and a decoder of gated convolutions, with fairseq's tensors."""

    tensors: Mapping[str, Array]
    """By their names."""
    residuals: tuple[Sequence[int], Sequence[int]]
    """How far below each layer of encoder and decoder adds its residual; 0 for none."""
    first_position: int = 2

    def encode(self, source: Sequence[int]) -> Array:
        """Encode a source with its end symbol; returns z, and z + e by sqrt(1/2), above it."""
        embeddings = self._embed("encoder", source, 0)

        def convolve(number: int, x: Array) -> Array:
            """Convolve all positions; an even kernel reads more of the future."""
            kernel = self._kernel("encoder", number)
            width = len(kernel)
            padded = np.pad(x, (((width - 1) // 2, width // 2), (0, 0)))
            shifts = (padded[tap : tap + len(x)] @ kernel[tap] for tap in range(width))
            return self._biased(f"encoder.convolutions.{number}", sum(shifts))

        z = self._run("encoder", embeddings, convolve)
        return np.stack((z, (z + embeddings) * z.dtype.type(_ROOT_HALF)))

    def offer_memory(self, states: Array) -> list[tuple[Array, Array]]:
        """Return keys and values."""
        return [(states[0], states[1])]

    def step(
        self, memory: Sequence[tuple[Array, Array]], past: Past, tokens: Sequence[int], at: int
    ) -> tuple[Array, Past]:
        """Process one token of several hypotheses at the position `at`."""
        ((keys, values),) = memory
        embeddings = self._embed_each("decoder", tokens, at)
        newer: Past = []

        def convolve(number: int, x: Array) -> Array:
            """Convolve the last inputs of each hypothesis."""
            kernel = self._kernel("decoder", number)
            before = np.zeros((len(x), len(kernel) - 1, x.shape[1]), x.dtype)
            window = np.concatenate((past[number][0] if past else before, x[:, None]), axis=1)
            newer.append((window[:, 1:], window[:, 1:]))
            return self._biased(
                f"decoder.convolutions.{number}", np.einsum("rki,kio->ro", window, kernel)
            )

        def attend(number: int, x: Array) -> Array:
            """Attend, where the layer does."""
            name = f"decoder.attention.{number}"
            if f"{name}.in_projection.bias" not in self.tensors:
                return x
            half = x.dtype.type(_ROOT_HALF)
            queries = (self._linear(f"{name}.in_projection", x) + embeddings) * half
            weights = np.exp(_log_softmax(queries @ keys.T))
            context = weights @ values * x.dtype.type(np.sqrt(len(keys)))
            return (self._linear(f"{name}.out_projection", context) + x) * half

        x = self._run("decoder", embeddings, convolve, attend)
        return _log_softmax(self._linear("decoder.fc3", x)), newer

    def _run(
        self,
        side: str,
        embeddings: Array,
        convolve: Callable[[int, Array], Array],
        attend: Callable[[int, Array], Array] | None = None,
    ) -> Array:
        """Run fc1, all layers and fc2."""
        residuals = self.residuals[side == "decoder"]
        inputs = [self._linear(f"{side}.fc1", embeddings)]
        for number, below in enumerate(residuals):
            a, b = np.split(convolve(number, inputs[-1]), 2, axis=1)
            x = a * (1 + np.tanh(b / 2)) / 2  # GLU
            if attend is not None:
                x = attend(number, x)
            if below:
                residual = inputs[-below]
                if f"{side}.projections.{number}.bias" in self.tensors:
                    residual = self._linear(f"{side}.projections.{number}", residual)
                x = (x + residual) * x.dtype.type(_ROOT_HALF)
            inputs.append(x)
        return self._linear(f"{side}.fc2", inputs[-1])

    def _embed(self, side: str, ids: Sequence[int], at: int) -> Array:
        """Look up tokens and the positions from `at` on."""
        table = self.tensors[f"{side}.embed_positions.weight"]
        places = self.first_position + at + np.arange(len(ids))
        tokens: Array = self.tensors[f"{side}.embed_tokens.weight"][list(ids)]
        return tokens + table[np.minimum(places, len(table) - 1)]

    def _embed_each(self, side: str, ids: Sequence[int], at: int) -> Array:
        """Look up tokens that all have one position."""
        return np.concatenate([self._embed(side, [token], at) for token in ids])

    def _kernel(self, side: str, number: int) -> Array:
        """Return the weight of a convolution, shape (kernel, inputs, outputs)."""
        return self._weight(f"{side}.convolutions.{number}")

    def _weight(self, name: str) -> Array:
        """Compute g v / |v|, with the norm over all axes but those of g; or a plain weight."""
        if f"{name}.weight" in self.tensors:
            return self.tensors[f"{name}.weight"]
        g, v = self.tensors[f"{name}.weight_g"], self.tensors[f"{name}.weight_v"]
        axes = tuple(axis for axis, size in enumerate(g.shape) if size == 1)
        weight: Array = v * (g / np.sqrt((v * v).sum(axes, keepdims=True)))
        return weight

    def _linear(self, name: str, x: Array) -> Array:
        """Multiply by a weight stored as (out, in), and add the bias."""
        return self._biased(name, x @ self._weight(name).T)

    def _biased(self, name: str, x: Array) -> Array:
        """Add the bias."""
        out: Array = x + self.tensors[f"{name}.bias"]
        return out


def _log_softmax(scores: Array) -> Array:
    """Logarithm of the softmax of each row."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    logarithms: Array = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return logarithms
