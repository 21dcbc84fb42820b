"""
Import of Hugging Face Marian folders, as OPUS-MT publishes them.

Read from it: ``config.json`` (shape), ``model.safetensors``, ``generation_config.json`` (search),
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
from heedful.exchange.formats import (
    ModelBundle,
    Problems,
    ReadOptions,
    read_safetensors,
    read_settings_file,
)
from heedful.exchange.marian.engine import TransformersReference
from heedful.exchange.marian.names import (
    ACTIVATIONS,
    BIAS,
    EPSILON,
    check_positions,
    marian_map,
    tied_as,
    unused_bias,
)
from heedful.exchange.marian.search import read_rule
from heedful.exchange.parity import ReferenceModel
from heedful.families.keymap import RowMap, TensorUse
from heedful.files import read_within
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.special_symbols import END, PAD
from heedful.tokenization.tokenizer import Tokenizer

_WEIGHTS = "model.safetensors"
_PIECES = {"pad": "pad_token", "unknown": "unk_token", "end": "eos_token"}
_USUAL = {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "</s>"}
_NUMBERS = (
    "vocab_size",
    "d_model",
    "encoder_layers",
    "decoder_layers",
    "encoder_attention_heads",
    "decoder_attention_heads",
    "encoder_ffn_dim",
    "decoder_ffn_dim",
    "max_position_embeddings",
)
# `generate` goes by generation_config.json where both files name them.
_SPECIAL_IDS = ("eos_token_id", "decoder_start_token_id", "pad_token_id")
_MOST_POSITIONS = 1 << 14
_ADVICE = "Import a model that has none of this, or change the files if they are wrong"


BOUND = 1e-4


def read(path: Path, options: ReadOptions) -> ModelBundle:
    """
    Read a folder with safetensors, which `save_pretrained` makes from a pickle.

    Raises `ExchangeError` with all reasons at once.
    """
    _check_files(path)
    settings = read_settings_file(path / "config.json")
    spelled = _optional(path / "tokenizer_config.json")
    _check_shape(settings, path)
    tensors = read_safetensors(path / _WEIGHTS)
    _check_sizes(settings, tensors, path)
    generation = _optional(path / "generation_config.json") or settings
    special = {name: generation.get(name) for name in _SPECIAL_IDS}
    settings |= {name: value for name, value in special.items() if value is not None}
    id_mappings = _numberings(path, settings, spelled)
    reasons = Problems()
    start = _start(settings, generation, id_mappings[1], reasons)
    positions = settings["max_position_embeddings"]
    rule = read_rule(generation, id_mappings[1], positions, reasons)
    reasons.refuse(f"the model in {path} cannot be imported", _ADVICE)
    tokenizer = _tokenizer(path, id_mappings, spelled, options)
    config = _config(settings, start, tokenizer, rule.search)
    weights, use = _weights(tensors, path / _WEIGHTS, config, tokenizer, id_mappings)
    return ModelBundle(config, weights, tokenizer, rule.notes, use)


def open_engine(path: Path, model: ModelBundle) -> ReferenceModel:
    """Open the original with transformers, or raise `MissingExtra`."""
    return TransformersReference(path, model.tokenizer)


def _check_files(path: Path) -> None:
    """List missing files."""
    if not path.is_dir():
        raise ExchangeError(f"a Marian model is a folder, but {path} is not; check the path.")
    needed = ("config.json", _WEIGHTS, "source.spm", "target.spm", "vocab.json")
    missing = [name for name in needed if not (path / name).is_file()]
    if not missing:
        return
    advice = "copy the whole folder again"
    if missing == [_WEIGHTS] and (path / "pytorch_model.bin").is_file():
        advice = (
            "pytorch_model.bin is a pickle, which is never read here; load the model with "
            "transformers and save it again with save_pretrained"
        )
    raise ExchangeError(
        f"a Marian folder must contain {', '.join(needed)}, but {path} lacks {', '.join(missing)}; "
        f"{advice}."
    )


def _optional(path: Path) -> dict[str, Any]:
    """Read an optional settings file."""
    return read_settings_file(path) if path.is_file() else {}


def _check_shape(settings: Mapping[str, Any], path: Path) -> None:
    """Refuse models that are not Marian or cannot be built."""
    reasons = Problems()
    kind = settings.get("model_type")
    reasons.add_if(kind != "marian", f"model_type must be marian, but is {kind!r}")
    for name in _NUMBERS:
        value = settings.get(name)
        is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
        reasons.add_if(not is_count, f"{name} must be a number above 0, but is {value!r}")
    activation = settings.get("activation_function")
    reasons.add_if(
        activation not in [*ACTIVATIONS],
        f"activation_function must be one of {', '.join(ACTIVATIONS)}, but is {activation!r}",
    )
    dropout = settings.get("dropout", 0.1)
    reasons.add_if(
        not isinstance(dropout, int | float) or not 0 <= dropout < 1,
        f"dropout must be from 0 to below 1, but is {dropout!r}",
    )
    if not reasons.messages:
        d_model = settings["d_model"]
        reasons.add_if(bool(d_model % 2), f"d_model must be even, but is {d_model}")
        for side in ("encoder", "decoder"):
            heads = settings[f"{side}_attention_heads"]
            reasons.add_if(
                bool(d_model % heads), f"{side}_attention_heads must divide d_model, but is {heads}"
            )
    reasons.refuse(f"{path / 'config.json'} does not describe a Marian model", _ADVICE)


def _check_sizes(settings: Mapping[str, Any], tensors: Mapping[str, Tensor], path: Path) -> None:
    """Refuse sizes that contradict the tensors, before anything of that size is allocated."""
    rows = max((len(tensor) for tensor in tensors.values() if tensor.dim()), default=0)
    width = max((max(tensor.shape, default=0) for tensor in tensors.values()), default=0)
    bounds = {
        "vocab_size": rows,
        "decoder_vocab_size": rows,
        "encoder_layers": len(tensors),
        "decoder_layers": len(tensors),
        "d_model": width,
        "encoder_ffn_dim": width,
        "decoder_ffn_dim": width,
        "max_position_embeddings": _MOST_POSITIONS,
    }
    reasons = Problems()
    for name, most in bounds.items():
        value = settings.get(name)
        reasons.add_if(
            isinstance(value, int) and value > most,
            f"{name} is {value:,}" if isinstance(value, int) else "",
        )
    reasons.refuse(
        f"{path / 'config.json'} gives sizes beyond those of the tensors in {_WEIGHTS}",
        "The two belong to different models",
    )


def _numberings(
    path: Path, settings: Mapping[str, Any], spelled: Mapping[str, Any]
) -> tuple[IdMapping, IdMapping]:
    """Map the vocabularies of both sides to our order of ids."""
    special: dict[str, str | None] = {
        name: _spelling(spelled, token) for name, token in _PIECES.items()
    }
    separate = spelled.get("separate_vocabs") is True
    target_rows = settings.get("decoder_vocab_size") or settings["vocab_size"]
    if settings.get("share_encoder_decoder_embeddings", True):
        target_rows = settings["vocab_size"]
    files = ("vocab.json", "target_vocab.json" if separate else "vocab.json")
    rows = (settings["vocab_size"], target_rows)
    made = []
    for file, count in zip(files, rows, strict=True):
        numbers = read_settings_file(path / file)
        if not all(isinstance(n, int) and not isinstance(n, bool) for n in numbers.values()):
            raise ExchangeError(f"{path / file} must give each piece a number, but does not.")
        start = _start_piece(numbers, settings, special) if file == files[1] else None
        try:
            made.append(IdMapping.of(numbers, {**special, "start": start}, count))
        except TokenizerError as error:
            raise ExchangeError(f"{path / file}: {error}") from error
    return made[0], made[1]


def _spelling(spelled: Mapping[str, Any], token: str) -> str:
    """Read the spelling of a special symbol, a string or a record with `content`."""
    value = spelled.get(token, _USUAL[token])
    return str(value.get("content", _USUAL[token]) if isinstance(value, dict) else value)


def _start_piece(
    numbers: Mapping[str, int], settings: Mapping[str, Any], special: Mapping[str, str | None]
) -> str | None:
    """Find the token that decoding starts with, if it is not already a special symbol."""
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
    # An end that may not be written ends nothing; among bad_words_ids `generate` ignores every end.
    never = _listed(generation, "suppress_tokens")
    others = [number for number in ends if number != end and number not in never]
    reasons.add_if(
        bool(others) or end not in ends,
        f"eos_token_id is {eos!r}, but translations end here at the end symbol alone, which is "
        f"number {end}",
    )
    wanted = settings.get("decoder_start_token_id")
    known = {number: index for index, number in enumerate(target.origins[:4])}
    reasons.add_if(
        not isinstance(wanted, int) or known.get(wanted, 1) == 1,
        f"decoder_start_token_id must be padding, end or a symbol of its own, but is {wanted!r}",
    )
    padding = settings.get("pad_token_id")
    reasons.add_if(padding != pad, f"pad_token_id is {padding!r}, but padding is number {pad}")
    place = known.get(wanted, 0) if isinstance(wanted, int) else 0
    return {0: "pad", 2: "symbol", 3: "end"}.get(place, "pad")


def _listed(generation: Mapping[str, Any], name: str) -> list[Any]:
    """Read a setting that is a list; empty if it is none."""
    value = generation.get(name)
    return value if isinstance(value, list) else []


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
        "activation": ACTIVATIONS[settings["activation_function"]],
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
