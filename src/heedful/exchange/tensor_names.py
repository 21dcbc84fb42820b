"""
How a toolkit names the tensors of a Transformer, written down once.

fairseq, OpenNMT-py and Joey NMT hold the same tensors under other names: queries, keys and values
apart, norms named by what they stand before or behind. From such a list follow the map to our names
and the independent computation that the result is compared with.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from heedful.exchange.keymap import SAME, Entry, KeyMap, RowMap, Stacked


@dataclass(frozen=True)
class TensorNames:
    """
    Name the tensors of a toolkit.

    Attributes
    ----------
    encoder_layer, decoder_layer : str
        What stands before the tensors of a layer, ``{}`` for its number.
    encoder_self, decoder_self, cross : str
        The three attentions, inside of a layer.
    query, key, value, mixed : str
        The four products of an attention; the last one brings the heads together.
    linear1, linear2 : str
        The two products of a feed-forward network, inside of a layer.
    encoder_norms : tuple of str and str
        Norms of self-attention and feed-forward network, inside of a layer.
    decoder_norms : tuple of str, str and str
        Norms of self-attention, attention to the source, feed-forward network.
    encoder_norm, decoder_norm : str
        Norms at the end of the stacks.
    source_table, target_table, output_embedding : str
        The three tables, with what stands for “weight” at the end.
    output_bias : str
        Bias of the logits; empty if there never is one.
    source_positions, target_positions : str
        Tables of learned positions; empty if there never are any.

    Notes
    -----
    Without “.weight” and “.bias” where a module has both.
    """

    encoder_layer: str
    decoder_layer: str
    encoder_self: str
    decoder_self: str
    cross: str
    query: str
    key: str
    value: str
    mixed: str
    linear1: str
    linear2: str
    encoder_norms: tuple[str, str]
    decoder_norms: tuple[str, str, str]
    encoder_norm: str
    decoder_norm: str
    source_table: str
    target_table: str
    output_embedding: str
    output_bias: str = ""
    source_positions: str = ""
    target_positions: str = ""


@dataclass(frozen=True)
class Tables:
    """
    Say how the rows of the tables are ordered.

    Attributes
    ----------
    source, target : RowMap
        From their ids to ours.
    source_positions, target_positions : RowMap or None, default None
        Which rows of the tables of learned positions are used.

    Notes
    -----
    A toolkit may keep rows for positions that it never uses.
    """

    source: RowMap
    target: RowMap
    source_positions: RowMap | None = None
    target_positions: RowMap | None = None


def key_map(
    tensor_names: TensorNames,
    shapes: Mapping[str, tuple[int, ...]],
    tables: Tables,
    ignored: tuple[str, ...] = (),
) -> KeyMap:
    """
    Map the tensors of a model.

    Parameters
    ----------
    tensor_names : TensorNames
        Their names.
    shapes : mapping of str to tuple of int
        Our tensors, by name.
    tables : Tables
        Order of the rows.
    ignored : tuple of str, default ()
        Patterns of names of theirs that carry nothing.

    Returns
    -------
    KeyMap
        One entry for each tensor of ours.

    Notes
    -----
    What the model does not have, such as a bias, is not expected there either.
    """
    bias = RowMap(tables.target.origins, tables.target.count, _IMPOSSIBLE)
    entries = [
        Entry("embed_source.weight", (tensor_names.source_table,), tables.source),
        Entry("embed_target.weight", (tensor_names.target_table,), tables.target),
        Entry("output_embedding", (tensor_names.output_embedding,), tables.target),
        Entry("output_bias", (tensor_names.output_bias,), bias),
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
    """
    Give products without a bias one of zeros.

    Parameters
    ----------
    theirs : mapping of str to Tensor
        Their tensors.
    tensor_names : TensorNames
        Their names.
    attention : bool
        Whether attention gets them too.

    Returns
    -------
    dict of str to Tensor
        With what was added.

    Notes
    -----
    Adding zero changes nothing, and our feed-forward networks have a bias, as in equation 2.
    """
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


# Far below every logit, and still a number: what a model does not know, it does not write.
_IMPOSSIBLE = -1e9


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
