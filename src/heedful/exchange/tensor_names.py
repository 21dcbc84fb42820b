"""
Tensor naming schemes of Transformer checkpoints.

fairseq, OpenNMT-py and Joey NMT hold the same tensors under other names. From a scheme follow the
map to our names and the computation that the result is compared with.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from heedful.exchange.keymap import SAME, Entry, KeyMap, RowMap, Stacked


@dataclass(frozen=True)
class TensorNames:
    """The tensor names of a toolkit; modules are named without “.weight” and “.bias”."""

    encoder_layer: str
    decoder_layer: str
    """Prefix of a layer's tensors, with ``{}`` for its number."""
    encoder_self: str
    decoder_self: str
    cross: str
    """The three attentions, inside of a layer."""
    query: str
    key: str
    value: str
    mixed: str
    """The four projections of an attention; the last is the output projection."""
    linear1: str
    linear2: str
    """The two products of a feed-forward network, inside of a layer."""
    encoder_norms: tuple[str, str]
    """Norms of self-attention and feed-forward network, inside of a layer."""
    decoder_norms: tuple[str, str, str]
    """Norms of self-attention, cross-attention and feed-forward network."""
    encoder_norm: str
    decoder_norm: str
    """Norms at the end of the stacks."""
    source_table: str
    target_table: str
    output_embedding: str
    """The three tables, with the toolkit's word for “weight” at the end."""
    output_bias: str = ""
    """Bias of the logits; empty if there never is one."""
    source_positions: str = ""
    target_positions: str = ""
    """Tables of learned positions; empty if there never are any."""


@dataclass(frozen=True)
class Tables:
    """The row orders of the tables; a toolkit may have rows for positions that it never uses."""

    source: RowMap
    target: RowMap
    """From their ids to ours."""
    source_positions: RowMap | None = None
    target_positions: RowMap | None = None
    """Used rows of the tables of learned positions."""


def key_map(
    tensor_names: TensorNames,
    shapes: Mapping[str, tuple[int, ...]],
    tables: Tables,
    ignored: tuple[str, ...] = (),
) -> KeyMap:
    """Build a model's key map; parameters that it lacks, such as a bias, are not expected."""
    bias = RowMap(tables.target.origins, tables.target.count, IMPOSSIBLE)
    entries = [
        Entry("embed_source.weight", (tensor_names.source_table,), tables.source),
        Entry("embed_target.weight", (tensor_names.target_table,), tables.target),
        Entry("output.weight", (tensor_names.output_embedding,), tables.target),
        Entry("output.bias", (tensor_names.output_bias,), bias),
        Entry(
            "source_positions.weight",
            (tensor_names.source_positions,),
            tables.source_positions or SAME,
        ),
        Entry(
            "target_positions.weight",
            (tensor_names.target_positions,),
            tables.target_positions or SAME,
        ),
        *_module("encoder.norm", tensor_names.encoder_norm),
        *_module("decoder.norm", tensor_names.decoder_norm),
    ]
    for side in ("encoder", "decoder"):
        layers = {name.split(".")[2] for name in shapes if name.startswith(f"{side}.layers.")}
        for number in sorted(layers, key=int):
            entries += _layer(tensor_names, side, number)
    return KeyMap(tuple(entry for entry in entries if entry.ours in shapes), ignored)


def with_zero_biases(
    theirs: Mapping[str, Tensor], tensor_names: TensorNames, attention: bool
) -> dict[str, Tensor]:
    """Add zero biases to products without one: ours have them, as in equation 2."""
    parts = (
        (tensor_names.query, tensor_names.key, tensor_names.value, tensor_names.mixed)
        if attention
        else ()
    )
    ends = tuple(f".{part}.weight" for part in (*parts, tensor_names.linear1, tensor_names.linear2))
    layers = tuple(
        layer.partition("{")[0]
        for layer in (tensor_names.encoder_layer, tensor_names.decoder_layer)
    )
    added = dict(theirs)
    for name, tensor in theirs.items():
        bias = f"{name.removesuffix('weight')}bias"
        if name.startswith(layers) and name.endswith(ends) and bias not in theirs:
            added[bias] = tensor.new_zeros(tensor.size(0))
    return added


# Output bias of a symbol that the original model lacks: far below every logit, so that it is never
# written, but finite, so that sums stay numbers.
IMPOSSIBLE = -1e9


def _layer(tensor_names: TensorNames, side: str, number: str) -> list[Entry]:
    """Map one layer."""
    ours = f"{side}.layers.{number}"
    encodes = side == "encoder"
    theirs = (tensor_names.encoder_layer if encodes else tensor_names.decoder_layer).format(number)
    attentions = (
        {"self": tensor_names.encoder_self}
        if encodes
        else {"self": tensor_names.decoder_self, "cross": tensor_names.cross}
    )
    norms = tensor_names.encoder_norms if encodes else tensor_names.decoder_norms
    entries = []
    for name, attention in attentions.items():
        parts = (tensor_names.query, tensor_names.key, tensor_names.value)
        for end in ("weight", "bias"):
            entries += [
                Entry(
                    f"{ours}.{name}_attention.qkv_proj.{end}",
                    tuple(f"{theirs}.{attention}.{part}.{end}" for part in parts),
                    Stacked(count=3),
                ),
                Entry(
                    f"{ours}.{name}_attention.out_proj.{end}",
                    (f"{theirs}.{attention}.{tensor_names.mixed}.{end}",),
                ),
            ]
    for name, norm in zip((*attentions, "feed_forward"), norms, strict=True):
        entries += _module(f"{ours}.{name}_residual.norm", f"{theirs}.{norm}")
    entries += _module(f"{ours}.feed_forward.linear1", f"{theirs}.{tensor_names.linear1}")
    entries += _module(f"{ours}.feed_forward.linear2", f"{theirs}.{tensor_names.linear2}")
    return entries


def _module(ours: str, theirs: str) -> list[Entry]:
    """Map weight and bias of a module."""
    return [Entry(f"{ours}.{end}", (f"{theirs}.{end}",)) for end in ("weight", "bias")]
