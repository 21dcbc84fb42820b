"""Settings files of a Hugging Face folder, and checks that all classes share."""

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from heedful.errors import ExchangeError, TokenizerError
from heedful.exchange.formats import Problems, read_settings_file
from heedful.exchange.huggingface.weights import LAYOUTS, SAFETENSORS, weights_file
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.special_symbols import END, PAD, START

ADVICE = "Import another model, or change the files if they are wrong"
"""Advice about a model that cannot be imported."""
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "swish": "silu",
    "silu": "silu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
}
"""Our activations by Hugging Face's names; an export uses the first of several names."""
STARTS = {"symbol": START, "pad": PAD, "end": END}
"""Our ids by the values of `model.decoder_start`."""
# Size settings of Marian's class and of BART's classes, grouped by their limits.
_ROWS = ("vocab_size", "decoder_vocab_size")
_WIDTHS = ("d_model", "encoder_ffn_dim", "decoder_ffn_dim")
_LAYERS = ("encoder_layers", "decoder_layers")
_HEADS = ("encoder_attention_heads", "decoder_attention_heads")
_POSITIONS = ("max_position_embeddings",)
_SYMBOLS = {
    "unknown": ("unk_token", "<unk>"),
    "start": ("bos_token", "<s>"),
    "end": ("eos_token", "</s>"),
    "pad": ("pad_token", "<pad>"),
}
# If both files contain these ids, `generate` uses the ids of generation_config.json.
_SPECIAL_IDS = ("eos_token_id", "decoder_start_token_id", "pad_token_id")
_MOST_POSITIONS = 1 << 14
# Maximum number of tokens that a tokenizer adds to its subwords. T5 adds 100, NLLB adds 203.
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
    Raise `ExchangeError` for a folder that lacks config.json, the weights or a needed file.

    `kind`: name of the class in the message.
    """
    if not path.is_dir():
        raise ExchangeError(f"a {kind} model must be a folder, but {path} is not; check the path.")
    names = ["config.json", *needed, SAFETENSORS]
    missing = [name for name in names if not (path / name).is_file()]
    if weights_file(path) is not None:
        missing = [name for name in missing if name not in LAYOUTS]
    if missing:
        raise ExchangeError(
            f"a {kind} folder must contain {', '.join(names)} (or weights in another layout), "
            f"but {path} lacks {', '.join(missing)}; copy the whole folder again."
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
    """Read a settings file; return an empty dictionary if the file does not exist."""
    return read_settings_file(path) if path.is_file() else {}


def generation_settings(path: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Read `generation_config.json`; older folders have these settings in config.json."""
    return optional_settings(path / "generation_config.json") or dict(settings)


def with_special_ids(settings: Mapping[str, Any], generation: Mapping[str, Any]) -> dict[str, Any]:
    """Replace special ids of config.json with the ids that `generate` uses."""
    special = {name: generation.get(name) for name in _SPECIAL_IDS}
    return {**settings, **{name: value for name, value in special.items() if value is not None}}


def check_type(settings: Mapping[str, Any], types: Collection[str], reasons: Problems) -> None:
    """Add a reason if `model_type` is not one of the given types."""
    kind = settings.get("model_type")
    reasons.add_if(
        kind not in [*types], f"model_type must be {' or '.join(types)}, but is {kind!r}"
    )


def check_shape(settings: Mapping[str, Any], types: Collection[str], reasons: Problems) -> None:
    """Add reasons why settings do not describe a valid model of Marian's or BART's classes."""
    check_type(settings, types, reasons)
    sizes = ("vocab_size", *_WIDTHS, *_LAYERS, *_HEADS, *_POSITIONS)
    check_counts(settings, sizes, reasons)
    activation = settings.get("activation_function")
    reasons.add_if(
        activation not in [*ACTIVATIONS],
        f"activation_function must be one of {', '.join(ACTIVATIONS)}, but is {activation!r}",
    )
    check_rate(settings.get("dropout", 0.1), "dropout", reasons)
    if reasons.messages:
        return
    d_model = settings["d_model"]
    reasons.add_if(bool(d_model % 2), f"d_model must be even, but is {d_model}")
    for name in _HEADS:
        heads = settings[name]
        reasons.add_if(bool(d_model % heads), f"{name} must divide d_model, but is {heads}")


def check_counts(settings: Mapping[str, Any], names: Iterable[str], reasons: Problems) -> None:
    """Add a reason for each setting that is not a whole number above 0."""
    for name in names:
        value = settings.get(name)
        is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
        reasons.add_if(not is_count, f"{name} must be a whole number above 0, but is {value!r}")


def check_head(
    settings: Mapping[str, Any], tensors: Mapping[str, Any], head: str, reasons: Problems
) -> None:
    """Add a reason if an untied output layer has no weights, because they would be random."""
    is_tied = settings.get("tie_word_embeddings", True)
    reasons.add_if(
        not is_tied and head not in tensors,
        f"tie_word_embeddings is {is_tied!r}, but the weights have no {head}",
    )


def check_rate(value: object, name: str, reasons: Problems) -> None:
    """Add a reason for a dropout rate that is not a probability less than 1."""
    is_rate = isinstance(value, int | float) and 0 <= value < 1
    reasons.add_if(not is_rate, f"{name} must be at least 0 and below 1, but is {value!r}")


def check_sizes(
    settings: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    path: Path,
    widths: Iterable[str] = _WIDTHS,
    layers: Iterable[str] = _LAYERS,
) -> None:
    """
    Refuse sizes that contradict the tensors, before anything of that size is allocated.

    `widths`, `layers`: names of the settings that contain widths and numbers of layers.
    """
    shapes = [tuple(tensor.shape) for tensor in tensors.values()]
    bounds = (
        (_ROWS, max((shape[0] for shape in shapes if shape), default=0)),
        (widths, max((max(shape, default=0) for shape in shapes), default=0)),
        (layers, len(tensors)),
        (_POSITIONS, _MOST_POSITIONS),
    )
    wrong = [
        f"{name} is {settings[name]:,}"
        for names, most in bounds
        for name in names
        if isinstance(settings.get(name), int) and settings[name] > most
    ]
    Problems(wrong).refuse(
        f"{path / 'config.json'} gives sizes that the tensors of the weights cannot have",
        "Settings and weights belong to different models",
    )


def check_start(wanted: Any, id_mapping: IdMapping, own: str, reasons: Problems) -> str:
    """Return the value of `model.decoder_start`; `own`: the start symbol's name in the message."""
    starts = {id_mapping.origins[number]: name for name, number in STARTS.items()}
    if type(wanted) is int and wanted in starts:
        return starts[wanted]
    reasons.add_if(
        True,
        f"decoder_start_token_id must be the id of the padding symbol, the end symbol or {own}, "
        f"but is {wanted!r}",
    )
    return "pad"


def special_symbols(spelled: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
    """Read the spelling of special symbols in `tokenizer_config.json`, in the order of `names`."""
    return {name: spelling(spelled, *_SYMBOLS[name]) for name in names}


def check_added(
    path: Path,
    spelled: Mapping[str, Any],
    tokenizer_json: Mapping[str, Any],
    kinds: str,
    is_usual: Callable[[str], object],
) -> None:
    """
    Refuse unusual added tokens, which are found in text before it is split into subwords.

    `kinds`: description of the allowed tokens in the message. `is_usual`: whether a token is
    allowed.
    """
    added, more = spelled.get("added_tokens_decoder"), tokenizer_json.get("added_tokens")
    entries = [*added.values()] if isinstance(added, dict) else []
    entries += more if isinstance(more, list) else []
    names = [str(entry.get("content")) for entry in entries if isinstance(entry, dict)]
    if others := [name for name in names if not is_usual(name)]:
        raise ExchangeError(
            f"the tokenizer of {path} must have no tokens besides those of {kinds}, but "
            f"{', '.join(map(repr, others[:5]))} were added; import a model without them."
        )


def check_vocabulary(numbers: Mapping[Any, Any], path: Path) -> dict[str, int]:
    """Refuse a vocabulary that does not map each piece to an id."""
    if not all(isinstance(piece, str) and type(n) is int for piece, n in numbers.items()):
        raise ExchangeError(f"{path} must give each piece an id, but does not; copy it again.")
    return dict(numbers)


def id_mapping_of(
    origin: object, numbers: Mapping[str, int], special: Mapping[str, str | None], rows: int
) -> IdMapping:
    """Map a vocabulary to our ids. Raises an `ExchangeError` that names the origin."""
    try:
        return IdMapping.of(numbers, special, rows)
    except TokenizerError as error:
        raise ExchangeError(f"{origin}: {error}") from error


def spelling(spelled: Mapping[str, Any], token: str, usual: str) -> str:
    """Read the spelling of a special symbol, which is a string or a record with `content`."""
    value = spelled.get(token, usual)
    return str(value.get("content", usual) if isinstance(value, dict) else value)


def listed_ids(generation: Mapping[str, Any], name: str) -> list[Any]:
    """Read a setting that is a list; any other value counts as an empty list."""
    value = generation.get(name)
    return value if isinstance(value, list) else []
