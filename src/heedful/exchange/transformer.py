"""
Transformers of other toolkits: the same tensors under other names.

fairseq, OpenNMT-py and Joey NMT each name the tensors of a Transformer by one scheme, which
determines the map to our names.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heedful.families.foreign import Array, ForeignModel, position_entries
from heedful.families.keymap import (
    IMPOSSIBLE,
    Entry,
    KeyMap,
    RowMap,
    Shape,
    Stacked,
    tied_copies,
)


@dataclass(frozen=True)
class TensorNames:
    """The tensor names of a toolkit; modules are named without “.weight” and “.bias”."""

    encoder_layer: str
    decoder_layer: str
    """Prefix of a layer's tensors, with ``{}`` for its number."""
    encoder_self: str
    decoder_self: str
    cross: str
    """The three attention modules, inside a layer."""
    query: str
    key: str
    value: str
    mixed: str
    """The four projections of an attention module; the last is the output projection."""
    linear1: str
    linear2: str
    """The two linear layers of a feed-forward network, inside a layer."""
    encoder_norms: tuple[str, str]
    """Norms of self-attention and feed-forward network, inside a layer."""
    decoder_norms: tuple[str, str, str]
    """Norms of self-attention, cross-attention and feed-forward network."""
    encoder_norm: str
    decoder_norm: str
    """Norms at the end of the stacks."""
    source_table: str
    target_table: str
    output_embedding: str
    """Tensor names of both embedding tables and the output matrix, with “.weight” at the end."""
    output_bias: str = ""
    """Bias of the logits; empty if the toolkit has none."""
    source_positions: str = ""
    target_positions: str = ""
    """Tables of learned positions; empty if the toolkit has none."""


def sides_of(layers: Sequence[int], heads: Sequence[int], d_ff: Sequence[int]) -> dict[str, int]:
    """Build the size settings; a side gets its own `heads` or `d_ff` only if the sides differ."""
    named = {"encoder_layers": layers[0], "decoder_layers": layers[1]}
    for name, values in (("heads", heads), ("d_ff", d_ff)):
        named[name] = values[0]
        if values[0] != values[1]:
            named |= {f"encoder_{name}": values[0], f"decoder_{name}": values[1]}
    return named


def transformer_of(
    names: TensorNames,
    tensors: Mapping[str, Array],
    settings: Mapping[str, Any],
    norms: tuple[str, str],
    scaled: tuple[bool, bool],
    *,
    first_position: int = 0,
) -> ForeignModel:
    """
    Convert a Transformer's settings and tensor names to ours.

    `settings`: our `model` settings, except norms and scales. `scaled`: whether embeddings of
    source and target are multiplied by the square root of d_model. `first_position`: first used row
    of the tables of learned positions.
    """
    learned = settings["positions"] == "learned"
    places = names.source_positions, names.target_positions
    positions, count = position_entries(tensors, places, first_position)
    kinds = dict(zip(("encoder_norm", "decoder_norm"), norms, strict=True))
    root = math.sqrt(max(settings["d_model"], 1))
    model = {
        **settings,
        "norm": norms[0],
        **(kinds if len(set(norms)) > 1 else {}),
        "scale_embeddings": scaled[1],
    }

    def key_map(shapes: Mapping[str, Shape], source: RowMap, target: RowMap) -> KeyMap:
        entries = _entries(names, shapes, source, target)
        if learned:
            entries += positions
        tables = {
            "embed_source.weight": names.source_table,
            "embed_target.weight": names.target_table,
            "output.weight": names.output_embedding,
        }
        present = tuple(entry for entry in entries if entry.ours in shapes)
        computed = () if learned else tuple(filter(None, places))
        return KeyMap(present, computed, tied_copies(tables, shapes))

    sizes = ("d_model", "d_ff", "encoder_d_ff", "decoder_d_ff", "heads")
    return ForeignModel(
        model,
        _with_zero_biases(tensors, names, settings.get("projection_bias", True)),
        key_map,
        {name: settings.get(name, 1) for name in sizes},
        {name: settings[name] for name in ("encoder_layers", "decoder_layers")},
        {"embed_source.weight": root if scaled[0] else 1 / root} if scaled[0] != scaled[1] else {},
        max_length=count - 1 if learned else 0,
    )


def _entries(
    names: TensorNames, shapes: Mapping[str, Shape], source: RowMap, target: RowMap
) -> list[Entry]:
    """Map all tensors except positions, including optional parameters such as biases."""
    bias = RowMap(target.origins, target.count, IMPOSSIBLE)
    entries = [
        Entry("embed_source.weight", (names.source_table,), source),
        Entry("embed_target.weight", (names.target_table,), target),
        Entry("output.weight", (names.output_embedding,), target),
        Entry("output.bias", (names.output_bias,), bias),
        *_module("encoder.norm", names.encoder_norm),
        *_module("decoder.norm", names.decoder_norm),
    ]
    for side in ("encoder", "decoder"):
        layers = {name.split(".")[2] for name in shapes if name.startswith(f"{side}.layers.")}
        for number in sorted(layers, key=int):
            entries += layer_entries(names, side, number)
    return entries


def layer_entries(names: TensorNames, side: str, number: str | int) -> list[Entry]:
    """Map one layer."""
    ours = f"{side}.layers.{number}"
    theirs = names.encoder_layer.format(number)
    attentions = {"self": names.encoder_self}
    norms: tuple[str, ...] = names.encoder_norms
    if side == "decoder":
        theirs, norms = names.decoder_layer.format(number), names.decoder_norms
        attentions = {"self": names.decoder_self, "cross": names.cross}
    entries = []
    for name, attention in attentions.items():
        parts = [f"{theirs}.{attention}.{part}" for part in (names.query, names.key, names.value)]
        entries += _module(f"{ours}.{name}_attention.qkv_proj", *parts)
        entries += _module(
            f"{ours}.{name}_attention.out_proj", f"{theirs}.{attention}.{names.mixed}"
        )
    for name, norm in zip((*attentions, "feed_forward"), norms, strict=True):
        entries += _module(f"{ours}.{name}_residual.norm", f"{theirs}.{norm}")
    entries += _module(f"{ours}.feed_forward.linear1", f"{theirs}.{names.linear1}")
    entries += _module(f"{ours}.feed_forward.linear2", f"{theirs}.{names.linear2}")
    return entries


def _module(ours: str, *theirs: str) -> list[Entry]:
    """Map weight and bias of one of our modules to one or more modules of the toolkit."""
    return [
        Entry(
            f"{ours}.{end}", tuple(f"{name}.{end}" for name in theirs), Stacked(count=len(theirs))
        )
        for end in ("weight", "bias")
    ]


def _with_zero_biases(
    theirs: Mapping[str, Array], names: TensorNames, attention: bool
) -> dict[str, Array]:
    """Add zero biases to linear layers that lack them, because our layers have biases."""
    parts = (names.query, names.key, names.value, names.mixed) if attention else ()
    ends = tuple(f".{part}.weight" for part in (*parts, names.linear1, names.linear2))
    layers = tuple(layer.partition("{")[0] for layer in (names.encoder_layer, names.decoder_layer))
    added = dict(theirs)
    for name, tensor in theirs.items():
        bias = f"{name.removesuffix('weight')}bias"
        if name.startswith(layers) and name.endswith(ends) and bias not in theirs:
            added[bias] = np.zeros(tensor.shape[:1], tensor.dtype)
    return added
