"""
T5 in NumPy: the reference where Hugging Face's class cannot be installed.

It reads the tensors of that class under its names, and its settings. It shares nothing with
`heedful.model`: each layer is computed anew for the whole target, and each bucket by a loop.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.oracles.numpy_transformer import ACTIVATIONS

Array = NDArray[np.floating]
_NAMES = {"gelu_new": "gelu_tanh", "swish": "silu"}


@dataclass(frozen=True)
class NumpyT5:
    """A model of Hugging Face's T5 class."""

    tensors: Mapping[str, Array]
    """By their names."""
    settings: Mapping[str, Any]
    """Those of `config.json`, all of them."""

    def log_probabilities(self, source: Sequence[int], target: Sequence[int]) -> Array:
        """Compute log-probabilities behind each token of a target that begins with the start."""
        memory = self._stack("encoder", self.tensors["shared.weight"][list(source)], None)
        states = self._stack("decoder", self.tensors["shared.weight"][list(target)], memory)
        if self.settings["scale_decoder_outputs"]:
            states = states / math.sqrt(self.settings["d_model"])
        head = self.tensors.get("lm_head.weight", self.tensors["shared.weight"])
        logits = states @ head.T
        logits = logits - logits.max(axis=-1, keepdims=True)
        out: Array = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        return out

    def _stack(self, side: str, x: Array, memory: Array | None) -> Array:
        """Compute all layers of one side; a decoder hides what follows."""
        layers = "num_layers" if side == "encoder" else "num_decoder_layers"
        bias = self._bias(side, len(x))
        for number in range(self.settings[layers]):
            place, part = f"{side}.block.{number}.layer", 0
            own = self._norm(f"{place}.0", x)
            x = x + self._attend(f"{place}.0.SelfAttention", own, own, bias)
            if memory is not None:
                part = 1
                across = np.zeros((1, len(x), len(memory)))
                x = x + self._attend(
                    f"{place}.1.EncDecAttention", self._norm(f"{place}.1", x), memory, across
                )
            place = f"{place}.{part + 1}"
            x = x + self._feed(f"{place}.DenseReluDense", self._norm(place, x))
        return self._scale(x, f"{side}.final_layer_norm.weight")

    def _bias(self, side: str, time: int) -> Array:
        """Look up what is added to the score of each pair: (heads, queries, keys)."""
        table = self.tensors[f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
        bias = np.empty((self.settings["num_heads"], time, time))
        for query in range(time):
            for key in range(time):
                bias[:, query, key] = table[self._bucket(key - query, side == "encoder")]
                if side == "decoder" and key > query:
                    bias[:, query, key] = -np.inf
        return bias

    def _bucket(self, distance: int, both_ways: bool) -> int:
        """Find the bucket of a distance; the logarithm is in fp32, as where it was trained."""
        count = self.settings["relative_attention_num_buckets"]
        most = self.settings["relative_attention_max_distance"]
        first, far = 0, max(-distance, 0)
        if both_ways:
            count //= 2
            first, far = (count if distance > 0 else 0), abs(distance)
        exact = count // 2
        if far < exact:
            return first + far
        share = np.log(np.float32(far / exact)) / np.float32(math.log(most / exact))
        return first + min(count - 1, exact + int(share * np.float32(count - exact)))

    def _attend(self, place: str, queries_from: Array, keys_from: Array, bias: Array) -> Array:
        """Compute attention whose scores are not scaled."""
        width = self.settings["d_kv"]
        query = queries_from @ self.tensors[f"{place}.q.weight"].T
        key = keys_from @ self.tensors[f"{place}.k.weight"].T
        value = keys_from @ self.tensors[f"{place}.v.weight"].T
        contexts = []
        for head in range(self.settings["num_heads"]):
            part = slice(head * width, (head + 1) * width)
            scores = query[:, part] @ key[:, part].T + bias[head % len(bias)]
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            contexts.append(weights / weights.sum(axis=-1, keepdims=True) @ value[:, part])
        out: Array = np.concatenate(contexts, axis=1) @ self.tensors[f"{place}.o.weight"].T
        return out

    def _feed(self, place: str, x: Array) -> Array:
        """Compute the feed-forward network, gated or not."""
        gate, _, name = self.settings["feed_forward_proj"].rpartition("-")
        name = "gelu_new" if (gate, name) == ("gated", "gelu") else name
        activation = ACTIVATIONS[_NAMES.get(name, name)]
        if gate:
            inner = activation(x @ self.tensors[f"{place}.wi_0.weight"].T)
            inner = inner * (x @ self.tensors[f"{place}.wi_1.weight"].T)
        else:
            inner = activation(x @ self.tensors[f"{place}.wi.weight"].T)
        out: Array = inner @ self.tensors[f"{place}.wo.weight"].T
        return out

    def _norm(self, place: str, x: Array) -> Array:
        """Normalize before a sub-layer."""
        return self._scale(x, f"{place}.layer_norm.weight")

    def _scale(self, x: Array, gain: str) -> Array:
        """Divide by the root of the mean square."""
        mean = (x**2).mean(axis=-1, keepdims=True) + self.settings["layer_norm_epsilon"]
        out: Array = x / np.sqrt(mean) * self.tensors[gain]
        return out
