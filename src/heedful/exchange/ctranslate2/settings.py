"""
Model settings inferred from CTranslate2's attributes and variable shapes.

A model of an older revision has few attributes. The import refuses features that it does not
support, such as relative positions, gated networks, and keys shared by heads. Unusual
scales are multiplied into the weights: a scale of queries other than 1 / sqrt(d_k), and a scale of
embeddings other than sqrt(d_model) or 1.
"""

import math
import re
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from heedful.exchange.ctranslate2.binary import Array, ModelFile
from heedful.exchange.ctranslate2.keys import (
    OUTPUT_BIAS,
    OUTPUT_TABLE,
    POSITIONS,
    ROTARY,
    SOURCE_TABLE,
    TARGET_TABLE,
)
from heedful.exchange.formats import Problems
from heedful.model.embedding import SINUSOIDS

# Number of heads by kind of model, for models that do not store this number.
_HEADS = {"TransformerBase": 8, "TransformerBig": 16, "TransformerSpec": 8}
_ACTIVATIONS = {0: "relu", 1: "gelu_tanh", 2: "silu", 3: "gelu"}
_EPSILON = 1e-5
_ROTATION: dict[str, float | int] = {
    "rotary_dim": -1,
    "rotary_interleave": 1,
    "rotary_base": 10000.0,
}
"""Attributes of rotary positions, with the values of a layer without any."""
_SIDES = ("encoder", "decoder")
# Variables that matter only for alignments, several source tables, or the start of a text.
_WITHOUT_MEANING = ("alignment_layer", "alignment_heads", "embeddings_merge")
_NOUGHT = (
    "alibi",
    "alibi_use_positive_positions",
    "scale_alibi",
    "multi_query",
    "multi_query_attention",
)


class Variables:
    """Settings inferred from a model file and ``config.json``; reading an attribute removes it."""

    def __init__(self, file: ModelFile, config: Mapping[str, Any]) -> None:
        self.reasons = Problems()
        known = file.spec in _HEADS
        self.reasons.add_if(not known, f"it is a {file.spec}, not one of {', '.join(_HEADS)}")
        self._default_heads = _HEADS.get(file.spec, 8)
        self.weights = file.floats()
        self._config = config
        old = "encoder/embeddings"
        for kind in ("weight", "multiply_by_sqrt_depth"):
            if f"{old}/{kind}" in self.weights:
                self.weights[f"{old}_0/{kind}"] = self.weights.pop(f"{old}/{kind}")
        begins = bool(config.get("add_source_bos")) or bool(self._attribute("with_source_bos", 0))
        self.reasons.add_if(
            begins, "its source begins with a start symbol, which the import does not support"
        )
        ends = self._attribute("with_source_eos", 0)
        self.source_ends = bool(config.get("add_source_eos") or ends)
        self._attribute("with_target_bos", 1)
        self.most_positions: int | None = None
        self.starts_from_zero = bool(self._attribute("decoder/start_from_zero_embedding", 0))

    def rows(self) -> tuple[int, int]:
        """Return the numbers of rows in the source and target embeddings."""
        return self._size(SOURCE_TABLE, 0), self._size(TARGET_TABLE, 0)

    def settings(self) -> dict[str, Any]:
        """Read the `model` settings and collect `reasons`; may be called only once."""
        d_model = self._size(TARGET_TABLE, 1)
        shape = self._shape(d_model)
        heads = {side: shape[f"{side}_heads"] for side in _SIDES}
        common = {name: shape[f"decoder_{name}"] for name in ("heads", "d_ff", "norm")}
        for side in _SIDES:
            for number in range(shape[f"{side}_layers"]):
                for name in ("self_attention", "attention"):
                    self._scale_queries(f"{side}/layer_{number}/{name}", heads[side])
            for name in _WITHOUT_MEANING:
                self._attribute(f"{side}/{name}", 0)
            for name in _NOUGHT:
                flag = self._attribute(f"{side}/{name}", 0)
                self.reasons.add_if(
                    flag != 0, f"{side}/{name} is set, which the import does not support"
                )
        return {
            "d_model": d_model,
            **{
                name: None if value == common.get(name.partition("_")[2]) else value
                for name, value in shape.items()
            },
            **common,
            **self._embeddings(d_model),
            **(self._rotation(shape) or self._positions(d_model)),
            **self._ties(),
            **self._biases(),
        }

    def _shape(self, d_model: int) -> dict[str, Any]:
        """Read the numbers of layers and heads, the widths and the norms."""
        shape: dict[str, Any] = {}
        widths = {}
        for side in _SIDES:
            numbers = {m[1] for name in self.weights if (m := _LAYER.match(name)) and m[0] == side}
            shape[f"{side}_layers"] = len(numbers)
            heads = int(self._attribute(f"{side}/num_heads", self._default_heads))
            rows = self._size(f"{side}/layer_0/self_attention/linear_0/weight", 0)
            fits = heads > 0 and rows > 0 and rows % (3 * heads) == 0
            self.reasons.add_if(
                not fits,
                "the number of rows of the query, key and value weights must be a multiple of "
                f"3 x {heads} heads, but is {rows} ({side})",
            )
            shape[f"{side}_heads"] = heads
            shape[f"{side}_d_ff"] = self._size(f"{side}/layer_0/ffn/linear_0/weight", 0)
            widths[side] = rows // (3 * heads) if fits else 1
        plain = all(widths[side] * shape[f"{side}_heads"] == d_model for side in _SIDES)
        self.reasons.add_if(
            not plain and len(set(widths.values())) > 1,
            f"heads have width {widths['encoder']} in the encoder, "
            f"{widths['decoder']} in the decoder",
        )
        width = None if plain else widths["decoder"]
        code = int(self._alike("activation", 0))
        self.reasons.add_if(code not in _ACTIVATIONS, f"its activation, number {code}, is unknown")
        for side in _SIDES:
            shape[f"{side}_norm"] = "pre" if self._attribute(f"{side}/pre_norm", 1) else "post"
        epsilon = self._config.get("layer_norm_epsilon") or _EPSILON
        shape |= {"d_k": width, "d_v": width}
        return shape | {"activation": _ACTIVATIONS.get(code), "norm_epsilon": epsilon}

    def _scale_queries(self, prefix: str, heads: int) -> None:
        """Scale the query weights if the model does not scale queries by 1 / sqrt(d_k)."""
        part = f"{prefix}/linear_0"
        stacked = 1 if prefix.endswith("/attention") else 3
        rows = self._size(f"{part}/weight", 0) // stacked
        if not rows or heads < 1:
            return
        width = rows // heads
        for name, needed in (("head_dim", width), ("num_heads_kv", heads), ("multi_query", 0)):
            value = int(self._attribute(f"{prefix}/{name}", needed))
            self.reasons.add_if(value != needed, f"{prefix}/{name} is {value} instead of {needed}")
        plain = 1.0 / math.sqrt(width)
        scale = self._attribute(f"{prefix}/queries_scale", plain)
        if not math.isclose(scale, plain, rel_tol=1e-6):
            for kind in ("weight", "bias"):
                if f"{part}/{kind}" in self.weights:
                    changed = self.weights[f"{part}/{kind}"].copy()
                    changed[:rows] *= np.float32(scale / plain)
                    self.weights[f"{part}/{kind}"] = changed

    def _embeddings(self, d_model: int) -> dict[str, Any]:
        """Read the scale of the embeddings; an unusual factor is multiplied into the table."""
        usual = math.sqrt(d_model)
        factors = {}
        for side, table in (("encoder", SOURCE_TABLE), ("decoder", TARGET_TABLE)):
            old = self.weights.pop(table.replace("weight", "multiply_by_sqrt_depth"), None)
            scale = self.weights.pop(f"{side}/scale_embeddings", old)
            if scale is None or scale.dtype.kind == "i":
                factors[table] = usual if scale is None or np.any(scale) else 1.0
            else:
                factors[table] = float(scale.flat[0]) if scale.size else 1.0
        for common in (usual, 1.0):
            if all(math.isclose(factor, common, rel_tol=1e-6) for factor in factors.values()):
                return {"scale_embeddings": common == usual}
        for table, factor in factors.items():
            if table in self.weights:
                self.weights[table] = self.weights[table] * np.float32(factor)
        return {"scale_embeddings": False}

    def _rotation(self, shape: Mapping[str, Any]) -> dict[str, Any]:
        """Read rotary positions, which must be the same in all layers; empty without them."""
        layers = [
            {
                name: self._attribute(f"{side}/layer_{number}/self_attention/{name}", default)
                for name, default in _ROTATION.items()
            }
            for side in _SIDES
            for number in range(shape[f"{side}_layers"])
        ]
        if all(layer == _ROTATION for layer in layers):
            return {}
        dim, interleaved, base = layers[0].values()
        widths = {
            self._size(f"{side}/layer_0/self_attention/linear_0/weight", 0)
            // (3 * shape[f"{side}_heads"])
            for side in _SIDES
        }
        for wrong, reason in (
            (any(layer != layers[0] for layer in layers), "its layers rotate in several ways"),
            (interleaved != 0, "it rotates pairs of neighbors instead of halves of heads"),
            (dim != 0 and {dim} != widths, f"it rotates {dim:g} numbers of each head, not all"),
        ):
            self.reasons.add_if(wrong, reason)
        tables = [self.weights.pop(name, None) for name in POSITIONS.values()]
        self.reasons.add_if(
            any(table is not None and table.any() for table in tables),
            "it has both rotary positions and a table of positions",
        )
        return {"positions": ROTARY, ROTARY: {"base": base}}

    def _positions(self, d_model: int) -> dict[str, Any]:
        """Recognize sinusoids; treat other tables as learned, with one length on both sides."""
        tables = [self.weights.pop(name, None) for name in POSITIONS.values()]
        there = [table for table in tables if table is not None]
        if not there:
            return {"positions": "halves", "position_offset": 1}
        shapes = [table.shape for table in there]
        if d_model % 2 or any(len(s) != 2 or not s[0] or s[1] != d_model for s in shapes):
            self.reasons.add_if(
                True,
                f"its position table must have an even width equal to d_model ({d_model})",
            )
            return {}
        longest, self.most_positions = max(map(len, there)), min(map(len, there))
        usual = _HALVES(1, longest, d_model).numpy()
        both = [usual if table is None else table for table in tables]
        for layout, first in product(SINUSOIDS, (0, 1, 2)):
            known = SINUSOIDS[layout](first, longest, d_model).numpy()
            if all(np.allclose(table, known[: len(table)], rtol=0, atol=1e-6) for table in both):
                return {"positions": layout, "position_offset": first}
        for name, table in zip(POSITIONS.values(), both, strict=True):
            more = np.repeat(table[-1:], longest - len(table), axis=0)
            self.weights[name] = np.concatenate([table, more])
        return {"positions": "learned"}

    def _ties(self) -> dict[str, Any]:
        """Detect tied tables, and remove their copies."""
        source, target, output = (
            self.weights.get(name) for name in (SOURCE_TABLE, TARGET_TABLE, OUTPUT_TABLE)
        )
        if source is None or target is None or output is None or not _same(target, output):
            return {"tie_embeddings": "none"}
        del self.weights[OUTPUT_TABLE]
        if not _same(source, target):
            return {"tie_embeddings": "output"}
        del self.weights[TARGET_TABLE]
        return {"tie_embeddings": "all"}

    def _biases(self) -> dict[str, Any]:
        """Add missing zero biases to feed-forward layers, and to projections if any has a bias."""
        projections = [name for name in self.weights if _PROJECTION.search(name)]
        networks = [name for name in self.weights if _NETWORK.search(name)]
        has_bias = any(name.replace("/weight", "/bias") in self.weights for name in projections)
        for name in [*networks, *(projections if has_bias else [])]:
            nought = np.zeros(self.weights[name].shape[:1], np.float32)
            self.weights.setdefault(name.replace("/weight", "/bias"), nought)
        return {"projection_bias": has_bias, "output_bias": OUTPUT_BIAS in self.weights}

    def _size(self, name: str, axis: int) -> int:
        """Return a size of a matrix; 0 if the matrix is missing, which the key map reports."""
        matrix = self.weights.get(name)
        return int(matrix.shape[axis]) if matrix is not None and matrix.ndim == 2 else 0

    def _attribute(self, name: str, default: float | int) -> float | int:
        """Remove and return an attribute that is a single number."""
        value = self.weights.pop(name, None)
        if value is None:
            return default
        self.reasons.add_if(value.size != 1, f"{name} has {value.size} numbers instead of one")
        return float(value.flat[0]) if value.size == 1 else default

    def _alike(self, name: str, default: float | int) -> float | int:
        """Remove and return an attribute that must be the same on both sides."""
        encoder, decoder = (self._attribute(f"{side}/{name}", default) for side in _SIDES)
        self.reasons.add_if(
            encoder != decoder, f"{name} is {encoder:g} in the encoder, {decoder:g} in the decoder"
        )
        return decoder


_HALVES = SINUSOIDS["halves"]
_LAYER = re.compile(r"(?:en|de)coder(?=/layer_(\d+)/)")
_PROJECTION = re.compile(r"attention/linear_\d+/weight$")
_NETWORK = re.compile(r"ffn/linear_\d+/weight$")


def _same(first: Array, second: Array) -> bool:
    """Return whether two tables are equal."""
    return first is second or (first.shape == second.shape and bool(np.array_equal(first, second)))
