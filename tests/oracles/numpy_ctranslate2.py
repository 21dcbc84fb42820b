"""
CTranslate2's Transformer in NumPy, computed from its own variables.

It shares neither code nor names with our model.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from heedful.exchange.ctranslate2.binary import Array, read_model_file
from heedful.exchange.ctranslate2.read import original_ids, read_config
from heedful.exchange.ctranslate2.vocabulary import read_vocabularies, special_token
from heedful.exchange.formats import ModelBundle
from heedful.exchange.parity import Ids
from heedful.search.settings import SearchOptions
from heedful.tokenization.tokenizer import END

_HEADS = {"TransformerBig": 16}


class NumpyCTranslate2:
    """A NumPy reference of CTranslate2's Transformer."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        file = read_model_file(folder / "model.bin")
        self._there = file.floats()
        self._heads = _HEADS.get(file.spec, 8)
        self._epsilon = config.get("layer_norm_epsilon") or 1e-5
        tokens = read_vocabularies(folder, config)
        self.rows = len(tokens[0]), len(tokens[1])
        end, start = (
            special_token(config, name, usual)
            for name, usual in (("eos_token", "</s>"), ("decoder_start_token", "<s>"))
        )
        self._end, self._start = tokens[1].index(end), tokens[1].index(start)
        ends = config.get("add_source_eos") or self._number("with_source_eos", 0)
        self._source_end = [tokens[0].index(end)] if ends else []

    def log_probabilities(self, source: Sequence[int], target: Sequence[int]) -> Array:
        """
        Compute the log-probabilities of a translation in float32, as CTranslate2 does.

        `source, target`: original ids, without special symbols.
        """
        x = self._embedded("encoder", [*source, *self._source_end])
        for place in self._layers("encoder"):
            x = self._attend(f"{place}/self_attention", x, x, "encoder")
            x = self._network(f"{place}/ffn", x, "encoder")
        memory = self._final("encoder", x)
        x = self._embedded("decoder", [self._start, *target])
        if self._number("decoder/start_from_zero_embedding", 0):
            x[0] = self._positions("decoder", 1)[0]
        past = np.tril(np.ones((len(x), len(x)), bool))
        for place in self._layers("decoder"):
            x = self._attend(f"{place}/self_attention", x, x, "decoder", past)
            x = self._attend(f"{place}/attention", x, memory, "decoder")
            x = self._network(f"{place}/ffn", x, "decoder")
        logits = self._linear("decoder/projection", self._final("decoder", x))
        logits = logits - logits.max(1, keepdims=True)
        return np.asarray(logits - np.log(np.exp(logits).sum(1, keepdims=True)))

    def _number(self, name: str, default: float | int) -> float | int:
        """Read an attribute."""
        return float(self._there[name].flat[0]) if name in self._there else default

    def _layers(self, side: str) -> list[str]:
        """List the layers in order."""
        names = {name.split("/")[1] for name in self._there if name.startswith(f"{side}/layer_")}
        names.discard("layer_norm")
        return [f"{side}/layer_{number}" for number in range(len(names))]

    def _embedded(self, side: str, ids: Sequence[int]) -> Array:
        """Look up tokens, scale them and add positions."""
        table = f"{side}/embeddings"
        if side == "encoder" and f"{table}/weight" not in self._there:
            table += "_0"
        weight = self._there[f"{table}/weight"]
        usual = math.sqrt(weight.shape[1])
        scale = self._there.get(
            f"{side}/scale_embeddings", self._there.get(f"{table}/multiply_by_sqrt_depth")
        )
        factor = usual
        if scale is not None:
            is_flag = scale.dtype.kind == "i"
            factor = (usual if scale.flat[0] else 1.0) if is_flag else float(scale.flat[0])
        return weight[list(ids)] * np.float32(factor) + self._positions(side, len(ids))

    def _positions(self, side: str, length: int) -> Array:
        """Return the first rows of the position table."""
        table = self._there.get(f"{side}/position_encodings/encodings")
        if table is not None:
            return table[np.minimum(np.arange(length), len(table) - 1)]
        half = self._there["decoder/embeddings/weight"].shape[1] // 2
        rates = np.exp(-math.log(10000.0) / max(half - 1, 1) * np.arange(half))
        angles = np.outer(np.arange(1, length + 1), rates)
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)

    def _linear(self, name: str, x: Array) -> Array:
        """Multiply and add the bias if there is one."""
        product = x @ self._there[f"{name}/weight"].T
        return product + self._there.get(f"{name}/bias", np.float32(0))

    def _norm(self, name: str, x: Array) -> Array:
        """Normalize each row."""
        centered = x - x.mean(1, keepdims=True)
        scale = np.sqrt((centered**2).mean(1, keepdims=True) + self._epsilon)
        return centered / scale * self._there[f"{name}/gamma"] + self._there[f"{name}/beta"]

    def _final(self, side: str, x: Array) -> Array:
        """Apply the final norm of a stack that has one."""
        return self._norm(f"{side}/layer_norm", x) if self._number(f"{side}/pre_norm", 1) else x

    def _attend(
        self, prefix: str, x: Array, memory: Array, side: str, may: Array | None = None
    ) -> Array:
        """Compute an attention sub-layer."""
        pre = bool(self._number(f"{side}/pre_norm", 1))
        queried = self._norm(f"{prefix}/layer_norm", x) if pre else x
        if prefix.endswith("/self_attention"):
            query, key, value = np.split(self._linear(f"{prefix}/linear_0", queried), 3, axis=1)
        else:
            query = self._linear(f"{prefix}/linear_0", queried)
            key, value = np.split(self._linear(f"{prefix}/linear_1", memory), 2, axis=1)
        heads = int(self._number(f"{side}/num_heads", self._heads))
        width = query.shape[1] // heads
        scale = self._number(f"{prefix}/queries_scale", 1 / math.sqrt(width))
        contexts = []
        for first in range(0, heads * width, width):
            part = slice(first, first + width)
            scores = query[:, part] @ key[:, part].T * np.float32(scale)
            if may is not None:
                scores = np.where(may, scores, -np.inf)
            scores = np.exp(scores - scores.max(1, keepdims=True))
            contexts.append(scores / scores.sum(1, keepdims=True) @ value[:, part])
        last = "linear_1" if prefix.endswith("/self_attention") else "linear_2"
        x = x + self._linear(f"{prefix}/{last}", np.concatenate(contexts, axis=1))
        return x if pre else self._norm(f"{prefix}/layer_norm", x)

    def _network(self, prefix: str, x: Array, side: str) -> Array:
        """Compute a feed-forward sub-layer."""
        pre = bool(self._number(f"{side}/pre_norm", 1))
        inner = self._linear(
            f"{prefix}/linear_0", self._norm(f"{prefix}/layer_norm", x) if pre else x
        )
        inner = _ACTIVATIONS[int(self._number(f"{side}/activation", 0))](inner)
        x = x + self._linear(f"{prefix}/linear_1", inner)
        return x if pre else self._norm(f"{prefix}/layer_norm", x)


def _gelu(x: Array) -> Array:
    """Compute GELU by the normal distribution function."""
    return np.asarray(x * 0.5 * (1 + np.vectorize(math.erf, otypes=[np.float32])(x / math.sqrt(2))))


def _gelu_tanh(x: Array) -> Array:
    """Compute GELU by the tanh approximation."""
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


_ACTIVATIONS = {
    0: lambda x: np.maximum(x, 0),
    1: _gelu_tanh,
    2: lambda x: x / (1 + np.exp(-x)),
    3: _gelu,
}


class NumpyCTranslate2Reference:
    """The NumPy computation as a side of a parity check; it searches greedily."""

    name = "a plain computation with NumPy"
    """The engine."""

    def __init__(
        self,
        plain: NumpyCTranslate2,
        source: Mapping[int, int],
        target: Mapping[int, int],
        never: Sequence[int],
        model: ModelBundle,
    ) -> None:
        self._plain, self._search = plain, model.config.search
        self._tokenizer, self._never = model.tokenizer, list(never)
        self._source, self._target = source, target

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Tokenize source sentences with the run's tokenizer."""
        return self._tokenizer.encode_source(sentences)

    def log_probabilities(self, source: Ids, target: Ids) -> Float[np.ndarray, "places rows"]:
        """Compute log-probabilities, minus infinity for symbols that CTranslate2 does not have."""
        logs = self._plain.log_probabilities(
            [self._source[number] for number in source], [self._target[n] for n in target]
        )
        ours = np.full((len(logs), 1 + max(self._target)), -np.inf, np.float32)
        for mine, theirs in self._target.items():
            ours[:, mine] = logs[:, theirs]
        return ours

    def outputs(self, sentences: Sequence[str]) -> list[list[int]]:
        """Translate greedily, step by step, without a cache."""
        limit = SearchOptions().over(self._search).limit
        translations = []
        for row in self.encode(sentences):
            target: list[int] = []
            while len(target) < min(limit.tokens(len(row)), 3 * len(row) + 10):
                last = self.log_probabilities(row, target)[-1]
                last[self._never] = -np.inf
                if len(target) < self._search.min_length:
                    last[END] = -np.inf
                best = int(last.argmax())
                if best == END:
                    break
                target.append(best)
            translations.append(target)
        return translations


def open_plain(path: Path, model: ModelBundle) -> NumpyCTranslate2Reference:
    """Open a folder of CTranslate2 for a comparison with its import."""
    config = read_config(path)
    ids = original_ids(path, model, read_vocabularies(path, config))
    return NumpyCTranslate2Reference(NumpyCTranslate2(path, config), *ids, model)
