"""
fairseq's convolutional models, `fconv`: ConvS2S as Gehring et al. (2017) trained it.

A convolution's weight is stored as (kernel, inputs, 2 outputs) there, and every product as its
direction `weight_v` and its length `weight_g`. The output matrix is plain here, so its two parts
are multiplied. The number of layers and their shapes are Python expressions in the options, such as
``[(512, 3)] * 9 + [(1024, 3)] * 4``; they are read, never executed.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.config.schema import RunConfig
from heedful.errors import ExchangeError
from heedful.exchange.checkpoint_view import (
    Array,
    data_settings,
    refuse_impossible_sizes,
    row_map,
    weight_shapes,
)
from heedful.exchange.formats import ModelBundle, Problems
from heedful.exchange.keymap import Entry, KeyMap, RowMap
from heedful.exchange.pickled.settings import number_in
from heedful.exchange.reference.numpy_convs2s import NumpyConvS2S
from heedful.exchange.reference.numpy_translator import (
    ForeignVocabulary,
    NumpySearch,
    NumpyTranslator,
)
from heedful.exchange.tensor_names import IMPOSSIBLE
from heedful.families.convs2s.config import MOST_LAYERS
from heedful.tokenization.tokenizer import Tokenizer

_FIRST_POSITION = 2
_DEFAULT_LAYERS = "[(512, 3)] * 20"


@dataclass(frozen=True)
class FConvCheckpoint:
    """A convolutional model as fairseq stored it; nothing else of the file is kept."""

    name: str
    """File and toolkit, for messages."""
    tensors: Mapping[str, Array]
    """Tensors by their names."""
    settings: Mapping[str, Any]
    """The options of the training."""
    languages: tuple[str, str]
    """Codes of source and target."""
    tokenizer: Tokenizer
    """The tokenizer with our ids."""
    words: tuple[ForeignVocabulary, ForeignVocabulary]
    search: Mapping[str, Any]
    """Our search settings."""
    rule: NumpySearch
    notes: tuple[str, ...] = ()
    """Remarks for the user."""

    def portable(self) -> ModelBundle:
        """Convert to our model; `ExchangeError` names all missing, extra and misshapen tensors."""
        model = self._model()
        refuse_impossible_sizes(
            self.name,
            {"encoder_embed_dim": model["d_model"]}
            | {f"a layer of the {side}": width for side, width in self._widths().items()},
            {f"{side} layers": len(self._layers(side)) for side in ("encoder", "decoder")},
            self.tensors,
        )
        rows = [self._position_rows(side) for side in ("encoder", "decoder")]
        data = data_settings(self.tokenizer, self.languages) | {"max_length": max(rows) - 1}
        config = RunConfig.from_dict({"model": model, "data": data, "search": dict(self.search)})
        shapes = weight_shapes(config, self.tokenizer)
        theirs = {
            name: torch.from_numpy(array) for name, array in _one_norm_each(self.tensors).items()
        }
        weights = self._key_map(shapes, max(rows)).to_ours(theirs, shapes, self.name)
        return ModelBundle(config, weights, self.tokenizer, self.notes)

    def reference(self) -> NumpyTranslator:
        """Build the NumPy reference for the parity check; does not need the toolkit."""
        encoder, decoder = (
            [below for _, _, below in self._layers(side)] for side in ("encoder", "decoder")
        )
        plain = NumpyConvS2S(self.tensors, (encoder, decoder))
        name = f"NumPy on {self.name}"
        return NumpyTranslator(name, plain, self.tokenizer, *self.words, True, self.rule)

    def _layers(self, side: str) -> list[tuple[int, int, int]]:
        """Read the shapes of the layers of one side."""
        return _shapes(self.settings, f"{side}_layers")

    def _widths(self) -> dict[str, int]:
        """Return the widest layer of each side."""
        return {
            side: max(channels for channels, _, _ in self._layers(side))
            for side in ("encoder", "decoder")
        }

    def _model(self) -> dict[str, Any]:
        """Build the model settings."""
        tied = bool(self.settings.get("share_input_output_embed"))
        attending = _attending(self.settings)
        return {
            "encoder": "convs2s",
            "decoder": "convs2s",
            "d_model": int(number_in(self.settings, "encoder_embed_dim", 512)),
            "dropout": float(number_in(self.settings, "dropout", 0.1)),
            "positions": "learned",
            "tie_embeddings": "output" if tied else "none",
            "output_bias": True,
            "decoder_start": "end",
            "source_end": True,
            "convs2s": {
                "encoder_layers": _written(self._layers("encoder")),
                "decoder_layers": _written(self._layers("decoder")),
                "attention": "all"
                if all(attending)
                else " ".join(str(number) for number, one in enumerate(attending, 1) if one),
                "out_embed_dim": int(number_in(self.settings, "decoder_out_embed_dim", 256)),
            },
        }

    def _position_rows(self, side: str) -> int:
        """Count the used rows of the positions of one side."""
        table = self.tensors.get(f"{side}.embed_positions.weight", np.zeros((4, 1)))
        return max(len(table) - _FIRST_POSITION, 2)

    def _key_map(self, shapes: Mapping[str, tuple[int, ...]], positions: int) -> KeyMap:
        """Build the key map; positions beyond a table share its last row, as in ours."""
        entries = []
        for side, ours, words in zip(
            ("encoder", "decoder"), ("source", "target"), self.words, strict=True
        ):
            rows = row_map(words.id_mapping)
            entries.append(Entry(f"embed_{ours}.weight", (f"{side}.embed_tokens.weight",), rows))
            last = self._position_rows(side) - 1
            origins = tuple(_FIRST_POSITION + min(row, last) for row in range(positions))
            places = RowMap(origins, _FIRST_POSITION + last + 1)
            entries.append(
                Entry(f"{ours}_positions.weight", (f"{side}.embed_positions.weight",), places)
            )
        target = row_map(self.words[1].id_mapping)
        bias = RowMap(target.origins, target.count, IMPOSSIBLE)
        entries.append(Entry("output.weight", ("decoder.fc3.weight",), target))
        entries.append(Entry("output.bias", ("decoder.fc3.bias",), bias))
        for name in shapes:
            if name.startswith(("encoder.", "decoder.")):
                module, end = name.rsplit(".", 1)
                theirs = module.replace("in_proj", "in_projection")
                theirs = theirs.replace("out_proj", "out_projection")
                is_convolution = ".convolutions." in module
                if end == "bias":
                    entries.append(Entry(name, (f"{theirs}.bias",)))
                elif end == "gain":
                    entries.append(Entry(name, (f"{theirs}.weight_g",), Lengths(is_convolution)))
                else:
                    entries.append(Entry(name, (f"{theirs}.weight_v",), Kernel(is_convolution)))
        here = tuple(entry for entry in entries if entry.ours in shapes)
        tied = () if "output.weight" in shapes else ("decoder.fc3.weight",)
        return KeyMap(here, ("decoder.version", *tied))


@dataclass(frozen=True)
class Kernel:
    """A weight of ours, (outputs, kernel, inputs), from one of a convolution or a product."""

    is_convolution: bool

    def join(self, parts: Any) -> Tensor:
        """Compute ours from theirs."""
        theirs: Tensor = parts[0]
        return theirs.permute(2, 0, 1).contiguous() if self.is_convolution else theirs.unsqueeze(1)

    def split(self, tensor: Tensor) -> list[Tensor]:
        """Compute theirs from ours."""
        return [tensor.permute(1, 2, 0) if self.is_convolution else tensor.squeeze(1)]


@dataclass(frozen=True)
class Lengths:
    """One number an output, which they store with an axis for each of the weight's."""

    is_convolution: bool

    def join(self, parts: Any) -> Tensor:
        """Compute ours from theirs."""
        theirs: Tensor = parts[0]
        return theirs.flatten()

    def split(self, tensor: Tensor) -> list[Tensor]:
        """Compute theirs from ours."""
        return [tensor.view(1, 1, -1) if self.is_convolution else tensor.view(-1, 1)]


def add_fconv_problems(settings: Mapping[str, Any], reasons: Problems) -> None:
    """Add what our ConvS2S cannot express."""
    width, other = (
        number_in(settings, f"{side}_embed_dim", 512) for side in ("encoder", "decoder")
    )
    reasons.add_if(width != other, f"`decoder_embed_dim` is {other} beside an encoder of {width}")
    readout = number_in(settings, "decoder_out_embed_dim", 256)
    reasons.add_if(
        bool(settings.get("share_input_output_embed")) and readout != width,
        f"`share_input_output_embed` with embeddings of {width} and a readout of {readout}",
    )
    cutoff = settings.get("adaptive_softmax_cutoff")
    reasons.add_if(bool(cutoff), f"`adaptive_softmax_cutoff` is {str(cutoff)[:40]}")
    attending = _attending(settings)
    reasons.add_if(not any(attending), "`decoder_attention` is off in all layers")
    reasons.add_if(
        len(attending) != len(_shapes(settings, "decoder_layers")),
        f"`decoder_attention` has {len(attending)} values for "
        f"{len(_shapes(settings, 'decoder_layers'))} layers",
    )


def _one_norm_each(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Give each output a length of its own, and the output matrix none."""
    # Checkpoints of before version 2 have one length for each shift of a decoder's kernel; they are
    # multiplied, and the lengths of the outputs taken.
    found = dict(tensors)
    for name in tensors:
        module, end = name.rsplit(".", 1)
        v = tensors.get(f"{module}.weight_v")
        if end != "weight_g" or v is None:
            continue
        g = tensors[name]
        axes = tuple(axis for axis, size in enumerate(g.shape) if size == 1)
        if module == "decoder.fc3":
            found["decoder.fc3.weight"] = v * (g / np.sqrt((v * v).sum(axes, keepdims=True)))
            del found[name], found[f"{module}.weight_v"]
        elif v.ndim == 3 and g.ndim == 3 and g.shape[2] == 1 and v.shape[2] > 1:
            weight = v * (g / np.sqrt((v * v).sum(axes, keepdims=True)))
            found[f"{module}.weight_v"] = weight
            found[name] = np.sqrt((weight * weight).sum((0, 1), keepdims=True))
    return found


def _written(layers: list[tuple[int, int, int]]) -> str:
    """Write shapes as our settings do."""
    parts = []
    for (channels, kernel, below), group in groupby(layers):
        count, end = len(list(group)), "" if below == 1 else f",{below}"
        parts.append(
            f"{count}x({channels},{kernel}{end})" if count > 1 else f"({channels},{kernel}{end})"
        )
    return " ".join(parts)


def _shapes(settings: Mapping[str, Any], name: str) -> list[tuple[int, int, int]]:
    """Read the shapes of all layers: channels, kernel, and from how far below it adds."""
    found = _list(settings, name, _DEFAULT_LAYERS)
    layers = []
    for number, shape in enumerate(found, start=1):
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
    return [bool(one) for one in _list(settings, "decoder_attention", "")]


def _list(settings: Mapping[str, Any], name: str, default: str) -> list[Any]:
    """Read a list that is written as a Python expression."""
    text = settings.get(name)
    text = default if text is None else text
    try:
        found = _value(ast.parse(str(text)[:10_000], mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        found = None
    if not isinstance(found, list) or not found:
        raise _unreadable(name, text)
    return found


def _value(node: ast.expr) -> Any:
    """Compute numbers, tuples, lists, their sums and their multiples; nothing else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Tuple):
        return tuple(_value(one) for one in node.elts)
    if isinstance(node, ast.List):
        return [_value(one) for one in node.elts]
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Add) and isinstance(left, list) and isinstance(right, list):
            return _bounded(left + right)
        if isinstance(node.op, ast.Mult):
            items, count = (right, left) if isinstance(right, list) else (left, right)
            if isinstance(items, list) and isinstance(count, int) and count <= MOST_LAYERS:
                return _bounded(items * count)
    raise ValueError


def _bounded(items: list[Any]) -> list[Any]:
    """Refuse more layers than any model has."""
    if len(items) > MOST_LAYERS:
        raise ValueError
    return items


def _unreadable(name: str, value: object) -> ExchangeError:
    """Explain a setting that is no list of layers."""
    return ExchangeError(
        f"The setting `{name}` of a checkpoint must be a list such as [(512, 3)] * 9, of at most "
        f"{MOST_LAYERS} layers, but {str(value)[:40]!r} came; the checkpoint is damaged."
    )
