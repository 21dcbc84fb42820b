"""A checkpoint of another toolkit, from which settings, weights and the parity check follow."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.config.schema import RunConfig
from heedful.exchange.formats import ModelBundle, Problems
from heedful.exchange.keymap import RowMap
from heedful.exchange.reference.numpy_transformer import NumpyTransformer
from heedful.exchange.reference.numpy_translator import (
    ForeignVocabulary,
    NumpySearch,
    NumpyTranslator,
)
from heedful.exchange.tensor_names import Tables, TensorNames, key_map, with_zero_biases
from heedful.families.build import build_model
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.tokenizer import END, PAD, START, Tokenizer

Array = NDArray[np.floating]


@dataclass(frozen=True)
class ForeignCheckpoint:
    """A model as its toolkit stored it; nothing else of the file is kept."""

    name: str
    """File and toolkit, for messages."""
    tensor_names: TensorNames
    tensors: Mapping[str, Array]
    """Tensors by these names."""
    model: Mapping[str, Any]
    """Our model settings, except norms, scales and those inferred from the tables."""
    norms: tuple[str, str]
    """For encoder and decoder."""
    scaled: tuple[bool, bool]
    """Whether embeddings of source and target are multiplied by the square root of d_model."""
    languages: tuple[str, str]
    """Codes of source and target."""
    tokenizer: Tokenizer
    """The tokenizer with our ids."""
    words: tuple[ForeignVocabulary, ForeignVocabulary]
    search: Mapping[str, Any]
    """Our search settings."""
    rule: NumpySearch
    first_rows: tuple[int, int] = (0, 0)
    """First row in use of the tables of learned positions."""
    ignored: tuple[str, ...] = ()
    """Patterns of tensor names to ignore."""
    notes: tuple[str, ...] = field(default=())
    """Remarks for the user."""

    @property
    def learned(self) -> bool:
        """Whether positions are learned."""
        return bool(self.model["positions"] == "learned")

    def portable(self) -> ModelBundle:
        """Convert to our model; `ExchangeError` names all missing, extra and misshapen tensors."""
        self._check_sizes()
        config = self._config()
        shapes = weight_shapes(config, self.tokenizer)
        theirs = with_zero_biases(
            {name: torch.from_numpy(array) for name, array in self.tensors.items()},
            self.tensor_names,
            config.model.projection_bias,
        )
        mapped = key_map(self.tensor_names, shapes, self._tables(config), self._ignored(config))
        weights = mapped.to_ours(theirs, shapes, self.name)
        if self.scaled[0] != self.scaled[1]:
            root = math.sqrt(config.model.d_model)
            weights["embed_source.weight"] *= root if self.scaled[0] else 1 / root
        return ModelBundle(config, weights, self.tokenizer, self.notes)

    def reference(self) -> NumpyTranslator:
        """Build the NumPy reference for the parity check; does not need the toolkit."""
        model = self.model
        width, heads = model["d_model"], model["heads"]
        plain = NumpyTransformer(
            self.tensors,
            self.tensor_names,
            (model["encoder_layers"], model["decoder_layers"]),
            (model.get("encoder_heads", heads), model.get("decoder_heads", heads)),
            self.norms,
            model["norm_epsilon"],
            ACTIVATIONS[model["activation"]],
            (
                math.sqrt(width) if self.scaled[0] else 1.0,
                math.sqrt(width) if self.scaled[1] else 1.0,
            ),
            self._positions(),
        )
        ends = model.get("source_end", True)
        name = f"NumPy on {self.name}"
        return NumpyTranslator(name, plain, self.tokenizer, *self.words, ends, self.rule)

    def _check_sizes(self) -> None:
        """Refuse sizes that contradict the tensors, before anything of that size is allocated."""
        sizes = ("d_model", "d_ff", "encoder_d_ff", "decoder_d_ff", "heads")
        layers = {name: self.model[name] for name in ("encoder_layers", "decoder_layers")}
        refuse_impossible_sizes(
            self.name, {name: self.model.get(name, 1) for name in sizes}, layers, self.tensors
        )

    def _config(self) -> RunConfig:
        """Build our settings."""
        model = dict(self.model)
        kinds = dict(zip(("encoder_norm", "decoder_norm"), self.norms, strict=True))
        model |= {"norm": self.norms[0]} | (kinds if len(set(self.norms)) > 1 else {})
        data = data_settings(self.tokenizer, self.languages)
        if self.learned:
            data["max_length"] = max(self._position_rows()) - 1
        settings = {"model": model | {"scale_embeddings": self.scaled[1]}, "data": data}
        return RunConfig.from_dict({**settings, "search": dict(self.search)})

    def _position_rows(self) -> tuple[int, int]:
        """Count the used rows of learned positions."""
        names = self.tensor_names.source_positions, self.tensor_names.target_positions
        shapes = [self.tensors[name].shape if name in self.tensors else (2, 1) for name in names]
        first = self.first_rows
        return max(shapes[0][0] - first[0], 2), max(shapes[1][0] - first[1], 2)

    def _tables(self, config: RunConfig) -> Tables:
        """Return the row orders; positions beyond a table share its last row, as in ours."""
        tables = []
        for rows, first in zip(self._position_rows(), self.first_rows, strict=True):
            wanted = range(config.data.max_length + 1)
            origins = tuple(first + min(number, rows - 1) for number in wanted)
            tables.append(RowMap(origins, first + rows))
        source, target = (row_map(words.id_mapping) for words in self.words)
        return Tables(source, target, *(tables if self.learned else ()))

    def _ignored(self, config: RunConfig) -> tuple[str, ...]:
        """List tensors that ours lacks because they are tied."""
        names, tie = self.tensor_names, config.model.tie_embeddings
        tied = {
            "all": (names.target_table, names.output_embedding),
            "output": (names.output_embedding,),
            "none": (),
        }[tie]
        learned = () if self.learned else (names.source_positions, names.target_positions)
        # With all tables tied, `names.source_table` is our table of both sides.
        return (*self.ignored, *tied, *filter(None, learned))

    def _positions(self) -> Callable[[str, int, int], Array]:
        """Return the position encodings, computed or stored as in this toolkit."""
        if not self.learned:
            layout, first = self.model["positions"], self.model.get("position_offset", 0)
            return lambda side, at, count: LAYOUTS[layout](first + at, count, self.model["d_model"])
        names = self.tensor_names.source_positions, self.tensor_names.target_positions
        tables = dict(
            zip(
                ("source", "target"),
                (
                    self.tensors[name][first:]
                    for name, first in zip(names, self.first_rows, strict=True)
                ),
                strict=True,
            )
        )
        return lambda side, at, count: tables[side][
            np.minimum(np.arange(at, at + count), len(tables[side]) - 1)
        ]


def refuse_impossible_sizes(
    origin: str,
    sizes: Mapping[str, int],
    layers: Mapping[str, int],
    tensors: Mapping[str, Array],
) -> None:
    """Refuse sizes that contradict the tensors, before anything of that size is allocated."""
    width = max((max(array.shape, default=0) for array in tensors.values()), default=0)
    reasons = Problems()
    for name, value in sizes.items():
        reasons.add_if(not 0 < value <= width, f"{name} is {value:,}")
    for name, value in layers.items():
        reasons.add_if(not 0 < value <= len(tensors), f"{name} is {value:,}")
    reasons.refuse(
        f"{origin} gives sizes that its tensors cannot have",
        "Settings and weights belong to different models",
    )


def data_settings(tokenizer: Tokenizer, languages: tuple[str, str]) -> dict[str, Any]:
    """Build our settings of languages and vocabulary."""
    return {
        "source_language": languages[0],
        "target_language": languages[1],
        "vocabulary_size": max(tokenizer.source_size, tokenizer.target_size),
        "vocabulary_multiple": 1,
        "shared_vocabulary": tokenizer.shared,
    }


def weight_shapes(config: RunConfig, tokenizer: Tokenizer) -> dict[str, tuple[int, ...]]:
    """List the shapes of our weights by their names, without allocating them."""
    with torch.device("meta"):
        built = build_model(
            config.model,
            tokenizer.source_size,
            tokenizer.target_size,
            max_length=config.data.max_length + 1,
            padding=PAD,
            start_token=START,
            end_token=END,
        )
    shapes = {name: tuple(tensor.shape) for name, tensor in built.state_dict().items()}
    return {name: shapes[name] for name, _ in built.named_parameters()}


def row_map(id_mapping: IdMapping) -> RowMap:
    """Order the rows of a table."""
    return RowMap(id_mapping.origins, id_mapping.rows)


def _relu(x: Array) -> Array:
    return np.maximum(x, 0)


def _gelu(x: Array) -> Array:
    error = np.vectorize(math.erf, otypes=[np.float64])(x.astype(np.float64) / math.sqrt(2))
    return (x * (1 + error) / 2).astype(x.dtype)


def _gelu_tanh(x: Array) -> Array:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return x * (1 + np.tanh(inner)) / 2


def _silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def _interleaved(first: int, count: int, width: int) -> Array:
    table = np.zeros((count, width))
    for column in range(0, width, 2):
        angle = np.arange(first, first + count) / 10000 ** (column / width)
        table[:, column], table[:, column + 1] = np.sin(angle), np.cos(angle)
    return table.astype(np.float32)


def _halves(first: int, count: int, width: int) -> Array:
    half = width // 2
    table = np.zeros((count, width))
    for column in range(half):
        angle = np.arange(first, first + count) * 10000 ** (-column / max(half - 1, 1))
        table[:, column], table[:, half + column] = np.sin(angle), np.cos(angle)
    return table.astype(np.float32)


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": _relu,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": _silu,
}
LAYOUTS: dict[str, Callable[[int, int, int], Array]] = {
    "interleaved": _interleaved,
    "halves": _halves,
}
