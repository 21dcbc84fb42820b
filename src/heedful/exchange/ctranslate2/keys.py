"""
The mapping between CTranslate2's variables and our weights, with heads of equal widths.

::

    …/self_attention/linear_0                   query, key and value, stacked by rows
    decoder/layer_0/attention/linear_0, _1      the query; key and value
    …/linear_1, decoder/…/attention/linear_2    the output projection
    …/ffn/linear_0, linear_1                    the feed-forward network
    …/layer_norm                                the norm of the sub-layer
    decoder/projection                          the output table

Weights have the shape (out, in) on both sides. Import and export use the same map.

CTranslate2 splits queries, keys and values into heads of one width. If the widths differ, the
narrower heads are padded with zeros. Zeros in queries and keys add nothing to dot products; zeros
in values are multiplied by zero columns of the output projection. The scale of queries, which
CTranslate2 stores as an attribute, still follows from the original width of the keys.
"""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from heedful.config.model import ModelConfig
from heedful.families.keymap import Change, Entry, KeyMap, Stacked

SOURCE_TABLE = "encoder/embeddings_0/weight"
TARGET_TABLE = "decoder/embeddings/weight"
OUTPUT_TABLE, OUTPUT_BIAS = "decoder/projection/weight", "decoder/projection/bias"
ROTARY = "rotary"  # the value of `model.positions`, and the table of its settings
POSITIONS = {side: f"{side}/position_encodings/encodings" for side in ("encoder", "decoder")}


def key_map(model: ModelConfig, source_rows: Change, target_rows: Change, bias: Change) -> KeyMap:
    """Build the key map of all weights; learned positions are two tables in CTranslate2."""
    entries = [Entry("embed_source.weight", (SOURCE_TABLE,), source_rows)]
    if model.tie_embeddings != "all":
        entries.append(Entry("embed_target.weight", (TARGET_TABLE,), target_rows))
    if model.tie_embeddings == "none":
        entries.append(Entry("output.weight", (OUTPUT_TABLE,), target_rows))
    if model.output_bias:
        entries.append(Entry("output.bias", (OUTPUT_BIAS,), bias))
    if model.positions == "learned":
        entries.append(Entry("source_positions.weight", (POSITIONS["encoder"],)))
        entries.append(Entry("target_positions.weight", (POSITIONS["decoder"],)))
    for side, layers in (("encoder", model.encoder_layers), ("decoder", model.decoder_layers)):
        for number in range(layers):
            entries += _layer(model, side, number)
        if norm_of(model, side) == "pre":
            entries += _norm(f"{side}.norm", side)
    return KeyMap(tuple(entries))


def norm_of(model: ModelConfig, side: str) -> str:
    """Return the norm setting of the encoder or decoder, which may have its own setting."""
    return str(getattr(model, f"{side}_norm") or model.norm)


def _layer(model: ModelConfig, side: str, number: int) -> Iterator[Entry]:
    """Map one layer."""
    ours, theirs = f"{side}.layers.{number}", f"{side}/layer_{number}"
    bias = model.projection_bias
    look = f"{theirs}/self_attention"
    yield from _linear(f"{ours}.self_attention.qkv_proj", (f"{look}/linear_0",), bias)
    yield from _linear(f"{ours}.self_attention.out_proj", (f"{look}/linear_1",), bias)
    yield from _norm(f"{ours}.self_residual.norm", look)
    if side == "decoder":
        cross = f"{theirs}/attention"
        heads, *widths = head_widths(model, side)
        inner = heads * max(widths)  # CTranslate2's heads have one width
        parts = (f"{cross}/linear_0", f"{cross}/linear_1")
        stacked = Stacked((inner, 2 * inner))
        yield from _linear(f"{ours}.cross_attention.qkv_proj", parts, bias, stacked)
        yield from _linear(f"{ours}.cross_attention.out_proj", (f"{cross}/linear_2",), bias)
        yield from _norm(f"{ours}.cross_residual.norm", cross)
    ffn = f"{theirs}/ffn"
    yield from _linear(f"{ours}.feed_forward.linear1", (f"{ffn}/linear_0",), True)
    yield from _linear(f"{ours}.feed_forward.linear2", (f"{ffn}/linear_1",), True)
    yield from _norm(f"{ours}.feed_forward_residual.norm", ffn)


def _linear(
    ours: str, theirs: tuple[str, ...], bias: bool, change: Change | None = None
) -> Iterator[Entry]:
    """Map weight and bias of a linear layer."""
    for kind in ("weight", "bias") if bias else ("weight",):
        names = tuple(f"{name}/{kind}" for name in theirs)
        yield Entry(f"{ours}.{kind}", names, change or Stacked())


def _norm(ours: str, theirs: str) -> Iterator[Entry]:
    """Map weight and bias of a layer norm."""
    yield Entry(f"{ours}.weight", (f"{theirs}/layer_norm/gamma",))
    yield Entry(f"{ours}.bias", (f"{theirs}/layer_norm/beta",))


def head_widths(model: ModelConfig, side: str) -> tuple[int, int, int]:
    """Return the number of heads, d_k and d_v of one side; an unset width is d_model / heads."""
    heads = getattr(model, f"{side}_heads") or model.heads
    usual = model.d_model // heads
    return heads, model.d_k or usual, model.d_v or usual


def with_equal_heads(model: ModelConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Pad the heads to equal widths; heads of equal widths are returned unchanged."""
    padded = dict(weights)
    for name, weight in weights.items():
        side, _, rest = name.partition(".")
        if "attention.qkv_proj" not in rest and "attention.out_proj" not in rest:
            continue
        heads, d_k, d_v = head_widths(model, side)
        width = max(d_k, d_v)
        if d_k == d_v:
            continue
        if "qkv_proj" in rest:
            parts = weight.split((heads * d_k, heads * d_k, heads * d_v))
            padded[name] = torch.cat([_pad_heads(part, heads, width) for part in parts])
        elif rest.endswith("weight"):
            padded[name] = _pad_heads(weight.t(), heads, width).t().contiguous()
    return padded


def _pad_heads(rows: Tensor, heads: int, width: int) -> Tensor:
    """Append rows of zeros to each head."""
    by_head = rows.unflatten(0, (heads, -1))
    missing = by_head.new_zeros(heads, width - by_head.size(1), *by_head.shape[2:])
    return torch.cat([by_head, missing], dim=1).flatten(0, 1)
