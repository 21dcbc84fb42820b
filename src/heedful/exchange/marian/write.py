"""
Export as a folder that Hugging Face's `MarianMTModel` and `MarianTokenizer` load.

The class is post-norm, with a fixed epsilon in layer norms, and sinusoids with sines before
cosines. The dimensions of a model with interleaved sinusoids are reordered
(`heedful.exchange.permute_dimensions`); missing biases become zeros.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.config.model import ModelConfig
from heedful.exchange.formats import (
    ExportResult,
    ModelBundle,
    Problems,
    WriteOptions,
    write_settings_file,
)
from heedful.exchange.huggingface.config_record import EPSILON, check_heads, config_record
from heedful.exchange.huggingface.engine import TransformersReference, numbering_of
from heedful.exchange.huggingface.search import write_rule
from heedful.exchange.huggingface.settings import STARTS
from heedful.exchange.huggingface.weights import write_model
from heedful.exchange.marian.names import (
    BIAS,
    CLASSES,
    SHARED,
    TABLES,
    marian_map,
)
from heedful.exchange.parity import ReferenceModel
from heedful.exchange.permute_dimensions import grouped_order, reorder_dimensions
from heedful.families.keymap import RowMap
from heedful.files import write_synced
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.sentencepiece_model import SentencePieceModel
from heedful.tokenization.special_symbols import END, PAD, UNKNOWN
from heedful.tokenization.tokenizer import Tokenizer

_ADVICE = (
    "To change a setting, train a new model, or fine-tune this one with --finetune-from and --set"
)


def write(model: ModelBundle, folder: Path, options: WriteOptions) -> ExportResult:
    """
    Write a model; an imported model gets back its original ids.

    Raises `ExchangeError` with all reasons at once.
    """
    reasons = Problems()
    _check_model(model.config.model, reasons)
    _check_text(model.tokenizer, reasons)
    reasons.refuse("Marian's class cannot express this model", _ADVICE)
    rows = [_rows(model, side) for side in (0, 1)]
    id_mappings = [numbering_of(model.tokenizer, side) for side in (0, 1)]
    settings = _settings(model, rows, options)
    special = _special_ids(model, rows[1])
    symbols = sum(origin is not None for origin in id_mappings[1].origins)
    theirs = {n: their for n, their in enumerate(rows[1].origins) if their is not None}
    generation, rule = write_rule(
        model.config.search, (symbols, rows[1].count), theirs, options.positions
    )
    generation |= special
    if rule.search.length_limit_policy == "end":
        generation["forced_eos_token_id"] = settings["forced_eos_token_id"] = theirs[END]
    tensors = _tensors(model, (rows[0], rows[1]))
    write_model(folder, tensors, settings | special, generation)
    _write_text(model.tokenizer, folder, options.positions)
    return ExportResult(rule.search, rule.notes)


def open_engine(folder: Path, model: ModelBundle) -> ReferenceModel:
    """Open the exported model with transformers, or raise `MissingExtra`."""
    return TransformersReference(folder, model.tokenizer, *CLASSES)


def _check_model(config: ModelConfig, reasons: Problems) -> None:
    """Add a reason for each setting that the class cannot express."""
    need = partial(reasons.need, config)
    need("norm", config.norm == "post", "post")
    for side in ("encoder_norm", "decoder_norm"):
        need(side, getattr(config, side) in (None, "post"), "post")
    need("norm_epsilon", config.norm_epsilon == EPSILON, f"{EPSILON:g}")
    layouts = ("interleaved", "grouped")
    need("positions", config.positions in layouts, " or ".join(layouts))
    need("position_offset", config.position_offset == 0, "0")
    need("decoder_start", config.decoder_start != "zero", "symbol, pad or end")
    need("source_end", config.source_end, "true")
    check_heads(config, reasons)


def _check_text(tokenizer: Tokenizer, reasons: Problems) -> None:
    """Add a reason for each setting with which `MarianTokenizer` would tokenize differently."""
    first = tokenizer.models[0]
    imported = isinstance(first, ImportedModel) and first.kind.endswith("sentencepiece")
    ours = isinstance(first, SentencePieceModel)
    reasons.add_if(
        not (imported or ours), f"the tokenizer must be sentencepiece, but is {tokenizer.kind}"
    )
    reasons.add_if(
        ours and bool(tokenizer.tags),
        "language tags need a tokenizer that ignores the space after a tag, but this one keeps it",
    )


def _rows(model: ModelBundle, side: int) -> RowMap:
    """Map the rows of a table; unused rows remain at the end."""
    id_mapping = numbering_of(model.tokenizer, side)
    name = "embed_source.weight"
    if side == 1 and "embed_target.weight" in model.weights:
        name = "embed_target.weight"
    filling = len(model.weights[name]) - len(id_mapping.origins)
    unused_rows = range(id_mapping.rows, id_mapping.rows + filling)
    return RowMap((*id_mapping.origins, *unused_rows), id_mapping.rows + filling)


def _special_ids(model: ModelBundle, target: RowMap) -> dict[str, Any]:
    """Look up the ids of the special symbols that decoding needs."""
    start = STARTS[model.config.model.decoder_start]
    return {
        "pad_token_id": target.origins[PAD],
        "eos_token_id": target.origins[END],
        "bos_token_id": None,
        "decoder_start_token_id": target.origins[start],
    }


def _settings(model: ModelBundle, rows: list[RowMap], options: WriteOptions) -> dict[str, Any]:
    """Build `config.json`, without the special ids."""
    config = model.config.model
    return config_record(config, CLASSES[0], "marian", options.positions) | {
        "static_position_embeddings": True,
        "vocab_size": rows[0].count,
        "decoder_vocab_size": rows[1].count,
        "share_encoder_decoder_embeddings": config.tie_embeddings == "all",
        "tie_word_embeddings": config.tie_embeddings != "none",
    }


def _tensors(model: ModelBundle, rows: tuple[RowMap, RowMap]) -> dict[str, Tensor]:
    """Convert the weights to the class's names; parameters that only the class has are zero."""
    config, weights = model.config.model, dict(model.weights)
    if config.positions == "interleaved":
        weights = reorder_dimensions(weights, grouped_order(config.d_model))
    if not config.projection_bias:
        weights |= {
            f"{name.removesuffix('weight')}bias": torch.zeros(len(tensor))
            for name, tensor in weights.items()
            if name.endswith(("qkv_proj.weight", "out_proj.weight"))
        }
    if "output.bias" not in weights:
        weights["output.bias"] = torch.zeros(len(_output(weights)))
    tables = {name: TABLES[name] for name in TABLES if name in weights}
    if config.tie_embeddings == "all":
        tables = {"embed_source.weight": SHARED}
    named = marian_map(config, tables, rows).to_theirs(weights)
    named[BIAS] = named[BIAS].reshape(1, -1)
    return named


def _output(weights: Mapping[str, Tensor]) -> Tensor:
    """Return the output matrix."""
    names = ("output.weight", "embed_target.weight", "embed_source.weight")
    return next(weights[name] for name in names if name in weights)


def _write_text(tokenizer: Tokenizer, folder: Path, positions: int) -> None:
    """Write the SentencePiece models and vocabularies."""
    separate = not tokenizer.shared
    sides = zip(("source", "target"), tokenizer.models, strict=True)
    for number, (side, model) in enumerate(sides):
        write_synced(folder / f"{side}.spm", model.files()["model"])
        if number == 0 or separate:
            name = "vocab.json" if number == 0 else "target_vocab.json"
            write_settings_file(folder / name, numbering_of(tokenizer, number).vocabulary)
    pieces = numbering_of(tokenizer, 1).pieces
    record = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": tokenizer.source_language or None,
        "target_lang": tokenizer.target_language or None,
        "pad_token": pieces[PAD],
        "unk_token": pieces[UNKNOWN],
        "eos_token": pieces[END],
        "model_max_length": positions,
        "separate_vocabs": separate,
    }
    write_settings_file(folder / "tokenizer_config.json", record)
