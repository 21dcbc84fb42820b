"""
fairseq's convolutional models, `fconv`: ConvS2S as Gehring et al. (2017) trained it.

fairseq stores a convolution's weight as (kernel, inputs, 2 outputs), and every weight as its
direction `weight_v` and its length `weight_g`. Our output matrix has no weight normalization, so
fairseq's direction and length of this matrix are combined. The options of fairseq give the shapes
of layers as Python expressions, such as ``[(512, 3)] * 9 + [(1024, 3)] * 4``. These expressions are
parsed, never executed.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from torch import Tensor

from heedful.errors import ExchangeError
from heedful.families.foreign import Array, ForeignModel, number_in, position_entries
from heedful.families.keymap import (
    IMPOSSIBLE,
    Entry,
    KeyMap,
    RowMap,
    Shape,
    tied_copies,
)
from heedful.settings.field_types import MOST_LAYERS

KIND = "fconv"
"""Prefix of the names of these architectures in fairseq."""

_OTHER_KINDS = ("fconv_lm", "fconv_self_att")
_FIRST_POSITION = 2
_DEFAULT_LAYERS = "[(512, 3)] * 20"
_SIDES = ("encoder", "decoder")
# Channels, kernel, and the distance in layers of the residual input; 0 means no residual.
_Layer = tuple[int, int, int]


def is_kind(settings: Mapping[str, Any]) -> bool:
    """Return whether the architecture is a convolutional model."""
    arch = str(settings.get("arch") or "")
    return arch.startswith(KIND) and not arch.startswith(_OTHER_KINDS)


def problems(settings: Mapping[str, Any]) -> Iterator[str]:
    """List settings that our ConvS2S cannot express."""
    width, target_width = (number_in(settings, f"{side}_embed_dim", 512) for side in _SIDES)
    if width != target_width:
        yield f"`decoder_embed_dim` is {target_width}, but the encoder's is {width}"
    readout = number_in(settings, "decoder_out_embed_dim", 256)
    if settings.get("share_input_output_embed") and readout != width:
        yield (
            "`share_input_output_embed` needs embeddings and readout of the same width, but they "
            f"are {width} and {readout} wide"
        )
    if cutoff := settings.get("adaptive_softmax_cutoff"):
        yield f"`adaptive_softmax_cutoff` is {str(cutoff)[:40]}"
    attending, layers = _attending(settings), len(_shapes(settings, "decoder_layers"))
    if not any(attending):
        yield "`decoder_attention` is off in all layers"
    if len(attending) != layers:
        yield f"`decoder_attention` has {len(attending)} values for {layers} layers"


def read_model(
    settings: Mapping[str, Any], tensors: Mapping[str, Array], shared: bool
) -> ForeignModel:
    """Read a model; fairseq never ties the tables of its two sides."""
    del shared
    layers = {side: _shapes(settings, f"{side}_layers") for side in _SIDES}
    attending = _attending(settings)
    width = int(number_in(settings, "encoder_embed_dim", 512))
    places = ("encoder.embed_positions.weight", "decoder.embed_positions.weight")
    positions, count = position_entries(tensors, places, _FIRST_POSITION)
    model = {
        "encoder": "convs2s",
        "decoder": "convs2s",
        "d_model": width,
        "dropout": float(number_in(settings, "dropout", 0.1)),
        "positions": "learned",
        "tie_embeddings": "output" if settings.get("share_input_output_embed") else "none",
        "output_bias": True,
        "decoder_start": "end",
        "source_end": True,
        "convs2s": {
            "encoder_layers": _format_layers(layers["encoder"]),
            "decoder_layers": _format_layers(layers["decoder"]),
            "attention": "all"
            if all(attending)
            else " ".join(str(number) for number, attends in enumerate(attending, 1) if attends),
            "out_embed_dim": int(number_in(settings, "decoder_out_embed_dim", 256)),
        },
    }
    widest = {side: max(channels for channels, _, _ in layers[side]) for side in _SIDES}
    return ForeignModel(
        model,
        _normalized_by_output(tensors),
        lambda shapes, source, target: _key_map(shapes, source, target, positions),
        {"encoder_embed_dim": width}
        | {f"a layer of the {side}": channels for side, channels in widest.items()},
        {f"{side} layers": len(layers[side]) for side in _SIDES},
        max_length=count - 1,
    )


def _key_map(
    shapes: Mapping[str, Shape], source: RowMap, target: RowMap, positions: list[Entry]
) -> KeyMap:
    """Build the key map."""
    bias = RowMap(target.origins, target.count, IMPOSSIBLE)
    entries = [
        Entry("embed_source.weight", ("encoder.embed_tokens.weight",), source),
        Entry("embed_target.weight", ("decoder.embed_tokens.weight",), target),
        Entry("output.weight", ("decoder.fc3.weight",), target),
        Entry("output.bias", ("decoder.fc3.bias",), bias),
        *positions,
    ]
    for name in shapes:
        if name.startswith(("encoder.", "decoder.")):
            module, end = name.rsplit(".", 1)
            is_convolution = ".convolutions." in module
            theirs = module.replace("in_proj", "in_projection").replace(
                "out_proj", "out_projection"
            )
            if end == "bias":
                entries.append(Entry(name, (f"{theirs}.bias",)))
            elif end == "gain":
                entries.append(Entry(name, (f"{theirs}.weight_g",), Lengths(is_convolution)))
            else:
                entries.append(Entry(name, (f"{theirs}.weight_v",), Kernel(is_convolution)))
    tables = {
        "embed_target.weight": "decoder.embed_tokens.weight",
        "output.weight": "decoder.fc3.weight",
    }
    present = tuple(entry for entry in entries if entry.ours in shapes)
    return KeyMap(present, ("decoder.version",), tied_copies(tables, shapes))


@dataclass(frozen=True)
class Kernel:
    """Conversion of a convolution's or linear layer's weight to ours, (outputs, kernel, inputs)."""

    is_convolution: bool

    def join(self, parts: Any) -> Tensor:
        """Convert fairseq's tensor to ours."""
        theirs: Tensor = parts[0]
        return theirs.permute(2, 0, 1).contiguous() if self.is_convolution else theirs.unsqueeze(1)

    def split(self, tensor: Tensor) -> list[Tensor]:
        """Convert our tensor to fairseq's."""
        return [tensor.permute(1, 2, 0) if self.is_convolution else tensor.squeeze(1)]


@dataclass(frozen=True)
class Lengths:
    """Conversion of one length per output, which fairseq stores with as many axes as the weight."""

    is_convolution: bool

    def join(self, parts: Any) -> Tensor:
        """Convert fairseq's tensor to ours."""
        theirs: Tensor = parts[0]
        return theirs.flatten()

    def split(self, tensor: Tensor) -> list[Tensor]:
        """Convert our tensor to fairseq's."""
        return [tensor.view(1, 1, -1) if self.is_convolution else tensor.view(-1, 1)]


def _normalized_by_output(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Give each weight one length per output; combine direction and length of the output matrix."""
    # Checkpoints older than version 2 have one length for each position of a decoder's kernel.
    # Their weights are multiplied out, and then get one length per output.
    changed = dict(tensors)
    for name, g in tensors.items():
        module, _, end = name.rpartition(".")
        v = tensors.get(f"{module}.weight_v")
        is_output = module == "decoder.fc3"
        if end != "weight_g" or v is None or not _fit(g, v):
            continue
        if not is_output and (v.ndim != 3 or g.shape[2] > 1 or v.shape[2] == 1):
            continue
        axes = tuple(axis for axis, size in enumerate(g.shape) if size == 1)
        weight = v * (g / np.sqrt((v * v).sum(axes, keepdims=True)))
        if is_output:
            changed["decoder.fc3.weight"] = weight
            del changed[name], changed[f"{module}.weight_v"]
        else:
            changed[f"{module}.weight_v"] = weight
            changed[name] = np.sqrt((weight * weight).sum((0, 1), keepdims=True))
    return changed


def _fit(g: Array, v: Array) -> bool:
    """Return whether each axis of the lengths has size 1 or the size of that axis of `v`."""
    pairs = zip(g.shape, v.shape, strict=False)
    return g.ndim == v.ndim and all(lengths in (1, size) for lengths, size in pairs)


def _format_layers(layers: list[_Layer]) -> str:
    """Write the shapes of layers in the form of the setting."""
    parts = []
    for (channels, kernel, below), group in groupby(layers):
        count, end = len(list(group)), "" if below == 1 else f",{below}"
        parts.append(
            f"{count}x({channels},{kernel}{end})" if count > 1 else f"({channels},{kernel}{end})"
        )
    return " ".join(parts)


def _shapes(settings: Mapping[str, Any], name: str) -> list[_Layer]:
    """Read the shapes of all layers: channels, kernel, and which earlier input is added."""
    layers = []
    for number, shape in enumerate(_list(settings, name, _DEFAULT_LAYERS), start=1):
        sizes = (*shape, 1) if isinstance(shape, tuple) and len(shape) == 2 else shape
        if (
            not isinstance(sizes, tuple)
            or len(sizes) != 3
            or not all(type(size) is int for size in sizes)
            or min(sizes[:2]) < 1
            or max(sizes) > 1_000_000
            or not 0 <= sizes[2] <= number
        ):
            raise _unreadable(name, settings.get(name))
        layers.append(sizes)
    return layers


def _attending(settings: Mapping[str, Any]) -> list[bool]:
    """Read which decoder layers attend."""
    value = settings.get("decoder_attention", "True")
    if value in (True, "True", False, "False", None):
        return [value not in (False, "False")] * len(_shapes(settings, "decoder_layers"))
    return [bool(attends) for attends in _list(settings, "decoder_attention", "")]


def _list(settings: Mapping[str, Any], name: str, default: str) -> list[Any]:
    """Read a list that is written as a Python expression."""
    text = settings.get(name)
    text = default if text is None else text
    try:
        items = _value(ast.parse(str(text)[:10_000], mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        items = None
    if not isinstance(items, list) or not items:
        raise _unreadable(name, text)
    return items


def _value(node: ast.expr) -> Any:
    """Evaluate numbers, tuples, lists, and sums and multiples of lists; refuse anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Tuple):
        return tuple(map(_value, node.elts))
    if isinstance(node, ast.List):
        return list(map(_value, node.elts))
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Add) and isinstance(left, list) and isinstance(right, list):
            return _check_count(left + right)
        if isinstance(node.op, ast.Mult):
            items, count = (right, left) if isinstance(right, list) else (left, right)
            if isinstance(items, list) and isinstance(count, int) and count <= MOST_LAYERS:
                return _check_count(items * count)
    raise ValueError


def _check_count(items: list[Any]) -> list[Any]:
    """Refuse more than `MOST_LAYERS` layers."""
    if len(items) > MOST_LAYERS:
        raise ValueError
    return items


def _unreadable(name: str, value: object) -> ExchangeError:
    """Build the error for a setting that is not a list of layers."""
    return ExchangeError(
        f"The setting `{name}` must be a list such as [(512, 3)] * 9 with at most "
        f"{MOST_LAYERS} layers, but got {str(value)[:40]!r}; the checkpoint is damaged."
    )
