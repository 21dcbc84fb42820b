"""
Import of Hugging Face Marian folders, as OPUS-MT publishes them.

The import reads ``config.json`` (shape), the weights, ``generation_config.json`` (search),
``source.spm``, ``target.spm`` and ``vocab.json`` (text).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.exchange.bundle import weight_shapes
from heedful.exchange.formats import ModelBundle, Problems, ReadOptions, read_settings_file
from heedful.exchange.huggingface import settings as files
from heedful.exchange.huggingface.config_record import run_config, shared_settings
from heedful.exchange.huggingface.engine import TransformersReference
from heedful.exchange.huggingface.search import read_rule
from heedful.exchange.huggingface.weights import read_weights
from heedful.exchange.marian.names import (
    BIAS,
    CLASSES,
    check_positions,
    marian_map,
    tied_as,
    unused_bias,
)
from heedful.exchange.parity import ReferenceModel
from heedful.families.keymap import RowMap
from heedful.files import read_within
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.special_symbols import END, PAD
from heedful.tokenization.tokenizer import Tokenizer

_TEXT = ("source.spm", "target.spm", "vocab.json")


def read(path: Path, options: ReadOptions) -> ModelBundle:
    """
    Read a folder, whatever the layout of its weights.

    Raises `ExchangeError`, which may list several reasons.
    """
    files.check_files(path, _TEXT, "Marian")
    settings = read_settings_file(path / "config.json")
    spelled = files.optional_settings(path / "tokenizer_config.json")
    _check_shape(settings, path)
    tensors = read_weights(path)
    files.check_sizes(settings, tensors, path)
    generation = files.generation_settings(path, settings)
    settings = files.with_special_ids(settings, generation)
    id_mappings = _numberings(path, settings, spelled)
    reasons = Problems()
    start = _start(settings, generation, id_mappings[1], reasons)
    positions = settings["max_position_embeddings"]
    rule = read_rule(generation, id_mappings[1], positions, reasons)
    reasons.refuse(f"the model in {path} cannot be imported", files.ADVICE)
    tokenizer = _tokenizer(path, id_mappings, spelled, options)
    model = _model_settings(settings) | {"decoder_start": start}
    config = run_config(model, rule.search, tokenizer, min(256, positions - 1))
    check_positions(tensors)
    filling = unused_bias(tensors.get(BIAS))
    source, target = (RowMap(mapping.origins, mapping.rows, filling) for mapping in id_mappings)
    tables = tied_as(config.model.tie_embeddings, tensors)
    key_map = marian_map(config.model, tables, (source, target))
    weights = key_map.to_ours(tensors, weight_shapes(config, tokenizer), path)
    return ModelBundle(config, weights, tokenizer, rule.notes, key_map.use_of(tensors))


def open_engine(path: Path, model: ModelBundle) -> ReferenceModel:
    """Open the original with transformers, or raise `MissingExtra`."""
    return TransformersReference(path, model.tokenizer, *CLASSES)


def _check_shape(settings: Mapping[str, Any], path: Path) -> None:
    """Refuse settings that do not describe a valid Marian model."""
    reasons = Problems()
    files.check_shape(settings, ("marian",), reasons)
    reasons.refuse(f"{path / 'config.json'} does not describe a Marian model", files.ADVICE)


def _numberings(
    path: Path, settings: Mapping[str, Any], spelled: Mapping[str, Any]
) -> tuple[IdMapping, IdMapping]:
    """Map the vocabularies of both sides to our order of ids."""
    special = files.special_symbols(spelled, ("pad", "unknown", "end"))
    separate = spelled.get("separate_vocabs") is True
    target_rows = settings.get("decoder_vocab_size") or settings["vocab_size"]
    if settings.get("share_encoder_decoder_embeddings", True):
        target_rows = settings["vocab_size"]
    names = ("vocab.json", "target_vocab.json" if separate else "vocab.json")
    rows = (settings["vocab_size"], target_rows)
    mappings = []
    for file, count in zip(names, rows, strict=True):
        numbers = files.check_vocabulary(read_settings_file(path / file), path / file)
        start = _start_piece(numbers, settings, special) if file == names[1] else None
        mappings.append(
            files.id_mapping_of(path / file, numbers, {**special, "start": start}, count)
        )
    return mappings[0], mappings[1]


def _start_piece(
    numbers: Mapping[str, int], settings: Mapping[str, Any], special: Mapping[str, str]
) -> str | None:
    """Find the start token of the decoder; None if it is already a special symbol."""
    wanted = settings.get("decoder_start_token_id")
    piece = next((piece for piece, number in numbers.items() if number == wanted), None)
    return None if piece in special.values() else piece


def _start(
    settings: Mapping[str, Any],
    generation: Mapping[str, Any],
    target: IdMapping,
    reasons: Problems,
) -> str:
    """Return the value of `model.decoder_start`, and check the special ids."""
    end, pad = (target.origins[number] for number in (END, PAD))
    eos = settings.get("eos_token_id")
    ends = eos if isinstance(eos, list) else [eos]
    # A suppressed end symbol ends no hypothesis; `generate` ignores end symbols in bad_words_ids.
    never = files.listed_ids(generation, "suppress_tokens")
    others = [number for number in ends if number != end and number not in never]
    reasons.add_if(
        bool(others) or end not in ends,
        f"eos_token_id must be only the id of the end symbol, {end}, but is {eos!r}",
    )
    padding = settings.get("pad_token_id")
    reasons.add_if(
        padding != pad,
        f"pad_token_id must be {pad}, the id of the padding symbol, but is {padding!r}",
    )
    wanted = settings.get("decoder_start_token_id")
    return files.check_start(wanted, target, "an extra symbol", reasons)


def _tokenizer(
    path: Path,
    id_mappings: tuple[IdMapping, IdMapping],
    spelled: Mapping[str, Any],
    options: ReadOptions,
) -> Tokenizer:
    """Build the tokenizer from the SentencePiece model of each side."""
    models = [
        ImportedModel(id_mapping, "sentencepiece", read_within(path / file))
        for id_mapping, file in zip(id_mappings, ("source.spm", "target.spm"), strict=True)
    ]
    return Tokenizer(
        *models,
        source_language=options.source_language or str(spelled.get("source_lang") or ""),
        target_language=options.target_language or str(spelled.get("target_lang") or ""),
    )


def _model_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Convert Marian's model settings to ours."""
    shared = bool(settings.get("share_encoder_decoder_embeddings", True))
    tied = bool(settings.get("tie_word_embeddings", True))
    return {
        **shared_settings(settings),
        "norm": "post",
        "positions": "grouped",
        "tie_embeddings": "none" if not tied else "all" if shared else "output",
        "output_bias": True,
    }
