"""
Import of Hugging Face Marian folders, as OPUS-MT publishes them.

The import reads ``config.json`` (shape), the weights, ``generation_config.json`` (search),
``source.spm``, ``target.spm`` and ``vocab.json`` (text).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from heedful.config.schema import RunConfig
from heedful.config.search import SearchConfig
from heedful.errors import ExchangeError, TokenizerError
from heedful.exchange.bundle import weight_shapes
from heedful.exchange.formats import ModelBundle, Problems, ReadOptions, read_settings_file
from heedful.exchange.huggingface import settings as files
from heedful.exchange.huggingface.engine import TransformersReference
from heedful.exchange.huggingface.search import read_rule
from heedful.exchange.huggingface.weights import read_weights
from heedful.exchange.marian.names import (
    BIAS,
    CLASSES,
    EPSILON,
    check_positions,
    marian_map,
    tied_as,
    unused_bias,
)
from heedful.exchange.parity import ReferenceModel
from heedful.families.keymap import RowMap, TensorUse
from heedful.files import read_within
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.special_symbols import END, PAD
from heedful.tokenization.tokenizer import Tokenizer

_TEXT = ("source.spm", "target.spm", "vocab.json")
_PIECES = {"pad": "pad_token", "unknown": "unk_token", "end": "eos_token"}
_USUAL = {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "</s>"}
BOUND = 1e-4


def read(path: Path, options: ReadOptions) -> ModelBundle:
    """
    Read a folder, whatever the layout of its weights.

    Raises `ExchangeError` with all reasons at once.
    """
    files.check_files(path, _TEXT, "Marian")
    settings = read_settings_file(path / "config.json")
    spelled = files.optional_settings(path / "tokenizer_config.json")
    _check_shape(settings, path)
    tensors = read_weights(path)
    files.check_sizes(
        settings,
        tensors,
        path,
        rows=("vocab_size", "decoder_vocab_size"),
        widths=("d_model", "encoder_ffn_dim", "decoder_ffn_dim"),
        layers=("encoder_layers", "decoder_layers"),
        positions=("max_position_embeddings",),
    )
    generation = files.generation_settings(path, settings)
    settings = files.with_special_ids(settings, generation)
    id_mappings = _numberings(path, settings, spelled)
    reasons = Problems()
    start = _start(settings, generation, id_mappings[1], reasons)
    positions = settings["max_position_embeddings"]
    rule = read_rule(generation, id_mappings[1], positions, reasons)
    reasons.refuse(f"the model in {path} cannot be imported", files.ADVICE)
    tokenizer = _tokenizer(path, id_mappings, spelled, options)
    config = _config(settings, start, tokenizer, rule.search)
    weights, use = _weights(tensors, path, config, tokenizer, id_mappings)
    return ModelBundle(config, weights, tokenizer, rule.notes, use)


def open_engine(path: Path, model: ModelBundle) -> ReferenceModel:
    """Open the original with transformers, or raise `MissingExtra`."""
    return TransformersReference(path, model.tokenizer, *CLASSES)


def _check_shape(settings: Mapping[str, Any], path: Path) -> None:
    """Refuse models that are not Marian or cannot be built."""
    reasons = Problems()
    files.check_type(settings, ("marian",), reasons)
    files.check_counts(settings, files.SIZES, reasons)
    files.check_activation(settings, "activation_function", reasons)
    files.check_rate(settings.get("dropout", 0.1), "dropout", reasons)
    if not reasons.messages:
        files.check_heads(settings, reasons)
    reasons.refuse(f"{path / 'config.json'} does not describe a Marian model", files.ADVICE)


def _numberings(
    path: Path, settings: Mapping[str, Any], spelled: Mapping[str, Any]
) -> tuple[IdMapping, IdMapping]:
    """Map the vocabularies of both sides to our order of ids."""
    special: dict[str, str | None] = {
        name: files.spelling(spelled, token, _USUAL[token]) for name, token in _PIECES.items()
    }
    separate = spelled.get("separate_vocabs") is True
    target_rows = settings.get("decoder_vocab_size") or settings["vocab_size"]
    if settings.get("share_encoder_decoder_embeddings", True):
        target_rows = settings["vocab_size"]
    names = ("vocab.json", "target_vocab.json" if separate else "vocab.json")
    rows = (settings["vocab_size"], target_rows)
    made = []
    for file, count in zip(names, rows, strict=True):
        numbers = read_settings_file(path / file)
        if not all(isinstance(n, int) and not isinstance(n, bool) for n in numbers.values()):
            raise ExchangeError(f"{path / file} must give each piece a number, but does not.")
        start = _start_piece(numbers, settings, special) if file == names[1] else None
        try:
            made.append(IdMapping.of(numbers, {**special, "start": start}, count))
        except TokenizerError as error:
            raise ExchangeError(f"{path / file}: {error}") from error
    return made[0], made[1]


def _start_piece(
    numbers: Mapping[str, int], settings: Mapping[str, Any], special: Mapping[str, str | None]
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
    """Return the decoder start setting, and check the special ids."""
    end, pad = (target.origins[number] for number in (END, PAD))
    eos = settings.get("eos_token_id")
    ends = eos if isinstance(eos, list) else [eos]
    # A forbidden end symbol ends nothing; in bad_words_ids, `generate` ignores every end symbol.
    never = files.listed_ids(generation, "suppress_tokens")
    others = [number for number in ends if number != end and number not in never]
    reasons.add_if(
        bool(others) or end not in ends,
        f"eos_token_id must name only the end symbol, number {end}, but is {eos!r}",
    )
    wanted = settings.get("decoder_start_token_id")
    known = {number: index for index, number in enumerate(target.origins[:4])}
    reasons.add_if(
        not isinstance(wanted, int) or known.get(wanted, 1) == 1,
        f"decoder_start_token_id must be padding, end or a symbol of its own, but is {wanted!r}",
    )
    padding = settings.get("pad_token_id")
    reasons.add_if(
        padding != pad, f"pad_token_id must be the number of padding, {pad}, but is {padding!r}"
    )
    place = known.get(wanted, 0) if isinstance(wanted, int) else 0
    return {0: "pad", 2: "symbol", 3: "end"}.get(place, "pad")


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


def _config(
    settings: Mapping[str, Any], start: str, tokenizer: Tokenizer, search: SearchConfig
) -> RunConfig:
    """Build our settings."""
    shared = bool(settings.get("share_encoder_decoder_embeddings", True))
    tied = bool(settings.get("tie_word_embeddings", True))
    model: dict[str, Any] = {
        "d_model": settings["d_model"],
        "heads": settings["encoder_attention_heads"],
        "decoder_heads": settings["decoder_attention_heads"],
        "d_ff": settings["encoder_ffn_dim"],
        "decoder_d_ff": settings["decoder_ffn_dim"],
        "encoder_layers": settings["encoder_layers"],
        "decoder_layers": settings["decoder_layers"],
        "activation": files.ACTIVATIONS[settings["activation_function"]],
        "dropout": float(settings.get("dropout", 0.1)),
        "norm": "post",
        "norm_epsilon": EPSILON,
        "positions": "grouped",
        "tie_embeddings": "none" if not tied else "all" if shared else "output",
        "output_bias": True,
        "scale_embeddings": bool(settings.get("scale_embedding", False)),
        "decoder_start": start,
    }
    return RunConfig().with_settings(
        {
            **{f"model.{name}": value for name, value in model.items()},
            **{f"search.{name}": value for name, value in search.model_dump().items()},
            "data.source_language": tokenizer.source_language,
            "data.target_language": tokenizer.target_language,
            "data.vocabulary_size": tokenizer.target_size,
            "data.vocabulary_multiple": 1,
            "data.shared_vocabulary": tokenizer.shared,
            "data.max_length": min(256, settings["max_position_embeddings"] - 1),
        }
    )


def _weights(
    tensors: Mapping[str, Tensor],
    origin: Path,
    config: RunConfig,
    tokenizer: Tokenizer,
    id_mappings: tuple[IdMapping, IdMapping],
) -> tuple[dict[str, Tensor], TensorUse]:
    """Convert the tensors to ours."""
    model = config.model
    tables = tied_as(model.tie_embeddings, tensors)
    check_positions(tensors)
    filling = unused_bias(tensors.get(BIAS))
    rows = [RowMap(id_mapping.origins, id_mapping.rows, filling) for id_mapping in id_mappings]
    key_map = marian_map(model, tables, (rows[0], rows[1]))
    weights = key_map.to_ours(tensors, weight_shapes(config, tokenizer), origin)
    return weights, key_map.use_of(tensors)
