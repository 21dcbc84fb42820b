"""Settings files of a Hugging Face folder, and checks that its classes share."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from heedful.errors import ExchangeError
from heedful.exchange.formats import Problems, read_settings_file
from heedful.exchange.huggingface.weights import LAYOUTS, SAFETENSORS, weights_file

ADVICE = "Import another model, or change the files if they are wrong"
"""Advice about a model that cannot be expressed."""
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "swish": "silu",
    "silu": "silu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
}
"""Our activations by their names; of several names the first is written."""
SIZES = (
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
"""The sizes of Marian's class and of BART's classes."""
# If both files name them, `generate` uses those of generation_config.json.
_SPECIAL_IDS = ("eos_token_id", "decoder_start_token_id", "pad_token_id")
_MOST_POSITIONS = 1 << 14
# Places of tokens that a tokenizer adds to its subwords. T5 has 100 of them, NLLB 203.
_MOST_ADDED = 10_000
_ADDED = {
    "added_tokens.json": (),
    "special_tokens_map.json": ("additional_special_tokens", "extra_special_tokens"),
    "tokenizer.json": ("added_tokens",),
    "tokenizer_config.json": (
        "added_tokens_decoder",
        "additional_special_tokens",
        "extra_special_tokens",
    ),
}


def check_files(path: Path, needed: Iterable[str], kind: str) -> None:
    """
    Raise `ExchangeError` for a folder without config.json, weights or one of some other files.

    `kind`: the class, for the message.
    """
    if not path.is_dir():
        raise ExchangeError(f"a {kind} model is a folder, but {path} is not; check the path.")
    names = ["config.json", SAFETENSORS, *needed]
    missing = [name for name in names if not (path / name).is_file()]
    if weights_file(path) is not None:
        missing = [name for name in missing if name not in LAYOUTS]
    if missing:
        raise ExchangeError(
            f"a {kind} folder must contain {', '.join(names)}, but {path} lacks "
            f"{', '.join(missing)}; copy the whole folder again."
        )
    _check_added_tokens(path)


def _check_added_tokens(path: Path) -> None:
    """Refuse a tokenizer with too many added tokens for transformers to load quickly."""
    for file, lists in _ADDED.items():
        content = optional_settings(path / file)
        added = [content.get(name) for name in lists] if lists else [content]
        most = max((len(tokens) for tokens in added if isinstance(tokens, list | dict)), default=0)
        if most > _MOST_ADDED:
            raise ExchangeError(
                f"{path / file} must add at most {_MOST_ADDED:,} tokens to the subwords, but adds "
                f"{most:,}; it belongs to another model."
            )


def optional_settings(path: Path) -> dict[str, Any]:
    """Read a settings file; empty if it is not there."""
    return read_settings_file(path) if path.is_file() else {}


def generation_settings(path: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Read `generation_config.json`; in older folders config.json has its settings."""
    return optional_settings(path / "generation_config.json") or dict(settings)


def with_special_ids(settings: Mapping[str, Any], generation: Mapping[str, Any]) -> dict[str, Any]:
    """Add to the settings of config.json the special ids that `generate` uses."""
    special = {name: generation.get(name) for name in _SPECIAL_IDS}
    return {**settings, **{name: value for name, value in special.items() if value is not None}}


def check_type(settings: Mapping[str, Any], types: Collection[str], reasons: Problems) -> None:
    """Add a reason if `model_type` is different."""
    kind = settings.get("model_type")
    reasons.add_if(
        kind not in [*types], f"model_type must be {' or '.join(types)}, but is {kind!r}"
    )


def check_counts(settings: Mapping[str, Any], names: Iterable[str], reasons: Problems) -> None:
    """Add a reason for each setting that is not a number above 0."""
    for name in names:
        value = settings.get(name)
        is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
        reasons.add_if(not is_count, f"{name} must be a number above 0, but is {value!r}")


def check_heads(settings: Mapping[str, Any], reasons: Problems) -> None:
    """Add a reason for an odd width, and for heads that do not divide it."""
    d_model = settings["d_model"]
    reasons.add_if(bool(d_model % 2), f"d_model must be even, but is {d_model}")
    for side in ("encoder", "decoder"):
        heads = settings[f"{side}_attention_heads"]
        reasons.add_if(
            bool(d_model % heads), f"{side}_attention_heads must divide d_model, but is {heads}"
        )


def check_activation(settings: Mapping[str, Any], name: str, reasons: Problems) -> None:
    """Add a reason for an activation that is not known here."""
    activation = settings.get(name)
    reasons.add_if(
        activation not in [*ACTIVATIONS],
        f"{name} must be one of {', '.join(ACTIVATIONS)}, but is {activation!r}",
    )


def check_head(
    settings: Mapping[str, Any], tensors: Mapping[str, Any], head: str, reasons: Problems
) -> None:
    """Add a reason for an output layer neither tied nor stored, which transformers would draw."""
    is_tied = settings.get("tie_word_embeddings", True)
    reasons.add_if(
        not is_tied and head not in tensors,
        f"tie_word_embeddings is {is_tied!r}, but the weights have no {head}",
    )


def check_rate(value: object, name: str, reasons: Problems) -> None:
    """Add a reason for a dropout that is not a probability below 1."""
    is_rate = isinstance(value, int | float) and 0 <= value < 1
    reasons.add_if(not is_rate, f"{name} must be from 0 to below 1, but is {value!r}")


def check_sizes(
    settings: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    path: Path,
    *,
    rows: Iterable[str] = (),
    widths: Iterable[str] = (),
    layers: Iterable[str] = (),
    positions: Iterable[str] = (),
) -> None:
    """
    Refuse sizes that contradict the tensors, before anything of that size is allocated.

    `rows`, `widths`, `layers`, `positions`: names of the settings that count them.
    """
    shapes = [tuple(tensor.shape) for tensor in tensors.values()]
    bounds = (
        (rows, max((shape[0] for shape in shapes if shape), default=0)),
        (widths, max((max(shape, default=0) for shape in shapes), default=0)),
        (layers, len(tensors)),
        (positions, _MOST_POSITIONS),
    )
    reasons = Problems()
    for names, most in bounds:
        for name in names:
            value = settings.get(name)
            if isinstance(value, int) and value > most:
                reasons.add_if(True, f"{name} is {value:,}")
    reasons.refuse(
        f"{path / 'config.json'} gives sizes that the tensors of the weights cannot have",
        "Settings and weights belong to different models",
    )


def spelling(spelled: Mapping[str, Any], token: str, usual: str) -> str:
    """Read the spelling of a special symbol, which is a string or a record with `content`."""
    value = spelled.get(token, usual)
    return str(value.get("content", usual) if isinstance(value, dict) else value)


def listed_ids(generation: Mapping[str, Any], name: str) -> list[Any]:
    """Read a setting that is a list; any other value reads as an empty one."""
    value = generation.get(name)
    return value if isinstance(value, list) else []
