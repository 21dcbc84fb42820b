"""
Recurrent models of Joey NMT: a bidirectional encoder, and a decoder with attention.

`RecurrentEncoder` and `RecurrentDecoder` of version 2.3.0 are one wiring of ours: the current top
state attends, and the readout is Luong's attentional state. Several layers are one module there and
one module a layer here. Scaled embeddings are multiplied into the tables.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import torch

from heedful.config.schema import RunConfig
from heedful.exchange.checkpoint_view import (
    Array,
    data_settings,
    refuse_impossible_sizes,
    row_map,
    weight_shapes,
)
from heedful.exchange.formats import ModelBundle, Problems
from heedful.exchange.keymap import Entry, KeyMap, OneRow
from heedful.exchange.pickled.settings import number_in
from heedful.exchange.reference.numpy_recurrent import NumpyRecurrent
from heedful.exchange.reference.numpy_translator import (
    ForeignVocabulary,
    NumpySearch,
    NumpyTranslator,
)
from heedful.tokenization.tokenizer import Tokenizer

_SCORES = {"bahdanau": "additive", "luong": "general"}
# Joey NMT starts from zero with every other name.
_STARTS = ("bridge", "last")
_WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
_SCALED_NOTE = (
    "Joey NMT scales the embeddings and ties them to the output; here the scale is part of the "
    "embedding, so the tables are not tied"
)
_DROPOUT_NOTE = (
    "the dropouts of Joey NMT's encoder and decoder differ; a fine-tuning here takes the encoder's"
)


@dataclass(frozen=True)
class RecurrentCheckpoint:
    """A recurrent model as Joey NMT stored it; nothing else of the file is kept."""

    name: str
    """File and toolkit, for messages."""
    tensors: Mapping[str, Array]
    """Tensors by their names."""
    model: Mapping[str, Any]
    """Our model settings."""
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
    ignored: tuple[str, ...] = ()
    """Patterns of tensor names to ignore."""
    notes: tuple[str, ...] = ()
    """Remarks for the user."""

    def portable(self) -> ModelBundle:
        """Convert to our model; `ExchangeError` names all missing, extra and misshapen tensors."""
        model, recurrent = self.model, self.model["recurrent"]
        widths = {side: recurrent[f"{side}_hidden_size"] for side in ("encoder", "decoder")}
        refuse_impossible_sizes(
            self.name,
            {"embedding_dim": model["d_model"]}
            | {f"hidden_size of the {side}": width for side, width in widths.items()},
            {
                f"num_layers of the {side}": model[f"{side}_layers"]
                for side in ("encoder", "decoder")
            },
            self.tensors,
        )
        data = data_settings(self.tokenizer, self.languages)
        config = RunConfig.from_dict(
            {"model": dict(model), "data": data, "search": dict(self.search)}
        )
        shapes = weight_shapes(config, self.tokenizer)
        theirs = {name: torch.from_numpy(array) for name, array in self.tensors.items()}
        weights = self._key_map(shapes).to_ours(theirs, shapes, self.name)
        for side, scaled in zip(("source", "target"), self.scaled, strict=True):
            if scaled:
                weights[f"embed_{side}.weight"] *= math.sqrt(model["d_model"])
        return ModelBundle(config, weights, self.tokenizer, self.notes)

    def reference(self) -> NumpyTranslator:
        """Build the NumPy reference for the parity check; does not need the toolkit."""
        model, recurrent = self.model, self.model["recurrent"]
        root = math.sqrt(model["d_model"])
        score = next(name for name, ours in _SCORES.items() if ours == recurrent["score"])
        plain = NumpyRecurrent(
            self.tensors,
            recurrent["cell"],
            (model["encoder_layers"], model["decoder_layers"]),
            (root if self.scaled[0] else 1.0, root if self.scaled[1] else 1.0),
            cast(Literal["bahdanau", "luong"], score),
            recurrent["start"],
            recurrent["feed"] == "readout",
        )
        name = f"NumPy on {self.name}"
        return NumpyTranslator(name, plain, self.tokenizer, *self.words, True, self.rule)

    def _key_map(self, shapes: Mapping[str, tuple[int, ...]]) -> KeyMap:
        """Build the key map; tied tables are one of ours."""
        source, target = (row_map(words.id_mapping) for words in self.words)
        tables = {
            "embed_source": ("src_embed.lut", source),
            "embed_target": ("trg_embed.lut", target),
            "output": ("decoder.output_layer", target),
        }
        entries = [
            Entry(f"{ours}.weight", (f"{theirs}.weight",), rows)
            for ours, (theirs, rows) in tables.items()
        ]
        for ours, theirs in (
            ("readout", "att_vector_layer"),
            ("start_proj", "bridge_layer"),
            ("attention.query_proj", "attention.query_layer"),
            ("attention.key_proj", "attention.key_layer"),
        ):
            entries += [
                Entry(f"decoder.{ours}.{end}", (f"decoder.{theirs}.{end}",))
                for end in ("weight", "bias")
            ]
        energy = "decoder.attention.energy_layer.weight"
        entries.append(Entry("decoder.attention.energy", (energy,), OneRow()))
        for side, place in (("encoder", "columns.0"), ("decoder", "layers")):
            entries += [
                Entry(
                    f"{side}.{place}.{layer}.rnn.{weight}_l0{end}",
                    (f"{side}.rnn.{weight}_l{layer}{end}",),
                )
                for layer in range(self.model[f"{side}_layers"])
                for weight in _WEIGHTS
                for end in ("", "_reverse")
            ]
        tied = [f"{tables[name][0]}.weight" for name in tables if f"{name}.weight" not in shapes]
        here = tuple(entry for entry in entries if entry.ours in shapes)
        return KeyMap(here, (*self.ignored, *tied))


def add_recurrent_problems(
    model: Mapping[str, Any], sides: Sequence[Mapping[str, Any]], reasons: Problems
) -> None:
    """Add what our recurrent models cannot express, and what Joey NMT itself cannot run."""
    encoder, decoder = sides
    cells = [str(side.get("rnn_type", "gru"))[:40] for side in sides]
    for cell in dict.fromkeys(cells):
        reasons.add_if(cell not in ("gru", "lstm"), f"`rnn_type` is {cell!r}, not gru or lstm")
    reasons.add_if(
        cells[0] != cells[1], f"`rnn_type` differs: {cells[0]} encoder, {cells[1]} decoder"
    )
    reasons.add_if(
        not encoder.get("bidirectional", True),
        "`bidirectional` is false, with which Joey NMT 2.3.0 itself does not run",
    )
    attention = str(decoder.get("attention", "bahdanau"))[:40]
    reasons.add_if(attention not in _SCORES, f"`attention` is {attention!r}, not bahdanau or luong")
    activation = str(decoder.get("activation", "tanh"))[:40]
    reasons.add_if(activation != "tanh", f"`activation` of the decoder is {activation!r}, not tanh")
    width, target_width = (_embedding_width(side) for side in sides)
    if not model.get("tied_embeddings"):
        reasons.add_if(
            width != target_width,
            f"`embedding_dim` differs: {width} for the source, {target_width} for the target",
        )
    widths = [int(number_in(side, "hidden_size", 0)) for side in sides]
    reasons.add_if(
        decoder.get("init_hidden") == "last" and widths[1] not in (widths[0], 2 * widths[0]),
        "`init_hidden` is last with decoder states as wide as neither one direction of the "
        f"encoder nor both: {widths[0]} in the encoder, {widths[1]} in the decoder",
    )
    reasons.add_if(
        bool(model.get("tied_softmax")) and widths[1] != width,
        f"`tied_softmax` with embeddings of width {width} and decoder states of {widths[1]}",
    )


def recurrent_model(
    model: Mapping[str, Any],
    sides: Sequence[Mapping[str, Any]],
    shared: bool,
    scaled: tuple[bool, bool],
) -> tuple[dict[str, Any], list[str]]:
    """Build the model settings, with remarks for the user."""
    encoder, decoder = sides
    dropouts = [(float(number_in(side, "dropout", 0)), _embedding_dropout(side)) for side in sides]
    notes = [_DROPOUT_NOTE] * (dropouts[0] != dropouts[1])
    tie = "none"
    if model.get("tied_softmax"):
        tie = "all" if model.get("tied_embeddings") and shared else "output"
        if any(scaled if tie == "all" else scaled[1:]):
            tie, notes = "none", [*notes, _SCALED_NOTE]
    start = str(decoder.get("init_hidden", "bridge"))
    settings = {
        "encoder": "recurrent",
        "decoder": "recurrent",
        "d_model": _embedding_width(encoder),
        "encoder_layers": int(number_in(encoder, "num_layers", 1)),
        "decoder_layers": int(number_in(decoder, "num_layers", 1)),
        "dropout": dropouts[0][0],
        "tie_embeddings": tie,
        "decoder_start": "symbol",
        "source_end": True,
        "recurrent": {
            "cell": str(encoder.get("rnn_type", "gru")),
            "encoder_hidden_size": int(number_in(encoder, "hidden_size", 0)),
            "decoder_hidden_size": int(number_in(decoder, "hidden_size", 0)),
            "direction": "bidirectional",
            "score": _SCORES[str(decoder.get("attention", "bahdanau"))],
            "query": "current",
            "feed": "readout" if decoder.get("input_feeding", True) else "none",
            "readout": "attentional",
            "start": start if start in _STARTS else "zero",
            "embedding_dropout": dropouts[0][1],
            "readout_dropout": float(number_in(decoder, "hidden_dropout", 0)),
        },
    }
    return settings, notes


def _embedding_width(side: Mapping[str, Any]) -> int:
    """Read the width of the embeddings of one side."""
    return int(number_in(_embeddings(side), "embedding_dim", 64))


def _embedding_dropout(side: Mapping[str, Any]) -> float:
    """Read the dropout of the embeddings, which is that of the side unless set."""
    return float(number_in(_embeddings(side), "dropout", number_in(side, "dropout", 0)))


def _embeddings(side: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the table of the embeddings' settings."""
    part = side.get("embeddings")
    return part if isinstance(part, dict) else {}
