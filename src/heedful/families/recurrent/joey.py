"""
Recurrent models of Joey NMT: a bidirectional encoder, and a decoder with attention.

`RecurrentEncoder` and `RecurrentDecoder` of version 2.3.0 match one of our designs: the current top
state attends, and the readout is Luong's attentional state. Joey NMT has one module for all layers,
and heedful has one for each layer. The scale of embeddings is multiplied into our tables.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from heedful.families.foreign import Array, ForeignModel, number_in, table_in
from heedful.families.keymap import SAME, Entry, KeyMap, OneRow, RowMap, Shape, tied_copies

KIND = "recurrent"
"""Joey NMT's name for the type of a recurrent encoder or decoder."""

_SCORES = {"bahdanau": "additive", "luong": "general"}
# With any other name, Joey NMT starts decoding from a state of zeros.
_STARTS = ("bridge", "last")
_WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
_TABLES = {
    "embed_source.weight": "src_embed.lut.weight",
    "embed_target.weight": "trg_embed.lut.weight",
    "output.weight": "decoder.output_layer.weight",
}
_PRODUCTS = {
    "readout": "att_vector_layer",
    "start_proj": "bridge_layer",
    "attention.query_proj": "attention.query_layer",
    "attention.key_proj": "attention.key_layer",
}
_SCALED_NOTE = (
    "Joey NMT scales the embeddings and ties them to the output; in heedful the scale is part of "
    "the embedding, so the tables are not tied"
)
_DROPOUT_NOTE = (
    "the dropouts of Joey NMT's encoder and decoder differ; fine-tuning in heedful uses the "
    "encoder's"
)


def is_kind(settings: Mapping[str, Any]) -> bool:
    """Return whether both sides are recurrent; only the encoder is recurrent by default."""
    encoder, decoder = _stacks(settings)
    return encoder.get("type", KIND) == KIND and decoder.get("type") == KIND


def problems(settings: Mapping[str, Any]) -> Iterator[str]:
    """List settings that our recurrent models cannot express or Joey NMT itself cannot run."""
    stacks = encoder, decoder = _stacks(settings)
    cells = [str(stack.get("rnn_type", "gru"))[:40] for stack in stacks]
    for cell in dict.fromkeys(cells):
        if cell not in ("gru", "lstm"):
            yield f"`rnn_type` is {cell!r}, not gru or lstm"
    if cells[0] != cells[1]:
        yield f"`rnn_type` differs: {cells[0]} encoder, {cells[1]} decoder"
    if not encoder.get("bidirectional", True):
        yield "`bidirectional` is false, but Joey NMT 2.3.0 itself cannot run such a model"
    attention = str(decoder.get("attention", "bahdanau"))[:40]
    if attention not in _SCORES:
        yield f"`attention` is {attention!r}, not bahdanau or luong"
    activation = str(decoder.get("activation", "tanh"))[:40]
    if activation != "tanh":
        yield f"`activation` of the decoder is {activation!r}, not tanh"
    width, target_width = map(_embedding_width, stacks)
    if not settings.get("tied_embeddings") and width != target_width:
        yield f"`embedding_dim` differs: {width} for the source, {target_width} for the target"
    widths = [int(number_in(stack, "hidden_size", 0)) for stack in stacks]
    if decoder.get("init_hidden") == "last" and widths[1] not in (widths[0], 2 * widths[0]):
        yield (
            "`init_hidden` = last needs decoder states as wide as one or both encoder "
            f"directions, but the decoder has {widths[1]} and the encoder {widths[0]}"
        )
    if settings.get("tied_softmax") and widths[1] != width:
        yield (
            "`tied_softmax` needs embeddings and decoder states of the same width, but they are "
            f"{width} and {widths[1]} wide"
        )


def read_model(
    settings: Mapping[str, Any], tensors: Mapping[str, Array], shared: bool
) -> ForeignModel:
    """Read a model."""
    encoder, decoder = stacks = _stacks(settings)
    scaled = [bool(_embeddings(stack).get("scale")) for stack in stacks]
    if settings.get("tied_embeddings"):  # the target uses the source's table and scale
        scaled[1] = scaled[0]
    tie, notes = "none", []
    if settings.get("tied_softmax"):
        tie = "all" if settings.get("tied_embeddings") and shared else "output"
        if any(scaled if tie == "all" else scaled[1:]):
            tie, notes = "none", [_SCALED_NOTE]
    dropouts = [
        (float(number_in(stack, "dropout", 0)), _embedding_dropout(stack)) for stack in stacks
    ]
    notes = [_DROPOUT_NOTE] * (dropouts[0] != dropouts[1]) + notes
    width, start = _embedding_width(encoder), str(decoder.get("init_hidden", "bridge"))
    hidden, layers = (
        [int(number_in(stack, name, default)) for stack in stacks]
        for name, default in (("hidden_size", 0), ("num_layers", 1))
    )
    model = {
        "encoder": "recurrent",
        "decoder": "recurrent",
        "d_model": width,
        "encoder_layers": layers[0],
        "decoder_layers": layers[1],
        "dropout": dropouts[0][0],
        "tie_embeddings": tie,
        "decoder_start": "symbol",
        "source_end": True,
        "recurrent": {
            "cell": str(encoder.get("rnn_type", "gru")),
            "encoder_hidden_size": hidden[0],
            "decoder_hidden_size": hidden[1],
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
    sides = zip(("encoder", "decoder"), hidden, layers, strict=True)
    named = {side: (states, count) for side, states, count in sides}
    return ForeignModel(
        model,
        tensors,
        lambda shapes, source, target: _key_map(shapes, source, target, layers),
        {"embedding_dim": width}
        | {f"hidden_size of the {side}": states for side, (states, _) in named.items()},
        {f"num_layers of the {side}": count for side, (_, count) in named.items()},
        {
            f"embed_{side}.weight": math.sqrt(width)
            for side, is_scaled in zip(("source", "target"), scaled, strict=True)
            if is_scaled
        },
        notes=tuple(notes),
    )


def _key_map(
    shapes: Mapping[str, Shape], source: RowMap, target: RowMap, layers: Sequence[int]
) -> KeyMap:
    """Build the key map; tied tables become one of our tensors."""
    rows = (source, target, target)
    entries = [
        Entry(ours, (theirs,), order)
        for (ours, theirs), order in zip(_TABLES.items(), rows, strict=True)
    ]
    entries += [
        Entry(f"decoder.{ours}.{end}", (f"decoder.{theirs}.{end}",), SAME)
        for ours, theirs in _PRODUCTS.items()
        for end in ("weight", "bias")
    ]
    energy = "decoder.attention.energy_layer.weight"
    entries.append(Entry("decoder.attention.energy", (energy,), OneRow()))
    for side, place, count in zip(
        ("encoder", "decoder"), ("columns.0", "layers"), layers, strict=True
    ):
        entries += [
            Entry(
                f"{side}.{place}.{layer}.rnn.{weight}_l0{end}",
                (f"{side}.rnn.{weight}_l{layer}{end}",),
            )
            for layer in range(count)
            for weight in _WEIGHTS
            for end in ("", "_reverse")
        ]
    present = tuple(entry for entry in entries if entry.ours in shapes)
    return KeyMap(present, copies=tied_copies(_TABLES, shapes))


def _stacks(settings: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the settings of encoder and decoder."""
    return table_in(settings, "encoder"), table_in(settings, "decoder")


def _embeddings(stack: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of the embeddings."""
    return table_in(stack, "embeddings")


def _embedding_width(stack: Mapping[str, Any]) -> int:
    """Read the width of the embeddings of one side."""
    return int(number_in(_embeddings(stack), "embedding_dim", 64))


def _embedding_dropout(stack: Mapping[str, Any]) -> float:
    """Read the dropout of the embeddings, which is by default the dropout of the side."""
    return float(number_in(_embeddings(stack), "dropout", number_in(stack, "dropout", 0)))
