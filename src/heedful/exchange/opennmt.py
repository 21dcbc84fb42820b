"""
Import of OpenNMT-py Transformers, versions 1 to 3, from a ``.pt`` file.

The file is a pickle with weights, options and vocabularies. The vocabularies of version 2 and
earlier are objects of torchtext, and only their lists of words are read. OpenNMT-py's Transformer
normalizes before its sub-layers, and its sources have no end symbol. If the model has position
encodings, embeddings are multiplied by the square root of the width.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from heedful.errors import ExchangeError
from heedful.exchange.bundle import bundle_of, refuse_features
from heedful.exchange.find_tokenizer import SPACES_NOTE, find_splitters, first_ids, tokenizer_of
from heedful.exchange.formats import ModelBundle, Problems, ReadOptions
from heedful.exchange.pickled.lazy_tensors import read_arrays
from heedful.exchange.pickled.placeholders import OpaqueObject
from heedful.exchange.pickled.settings import settings_of
from heedful.exchange.pickled.torch_file import read_torch_file
from heedful.exchange.transformer import TensorNames, transformer_of
from heedful.families.foreign import Array, ForeignModel, number_in
from heedful.model.embedding import SINUSOIDS
from heedful.tokenization.id_mapping import IdMapping

USES = ("tokenizer",)
"""Options of this format."""
TENSOR_NAMES = TensorNames(
    encoder_layer="encoder.transformer.{}",
    decoder_layer="decoder.transformer_layers.{}",
    encoder_self="self_attn",
    decoder_self="self_attn",
    cross="context_attn",
    query="linear_query",
    key="linear_keys",
    value="linear_values",
    mixed="final_linear",
    linear1="feed_forward.w_1",
    linear2="feed_forward.w_2",
    encoder_norms=("layer_norm", "feed_forward.layer_norm"),
    decoder_norms=("layer_norm_1", "layer_norm_2", "feed_forward.layer_norm"),
    encoder_norm="encoder.layer_norm",
    decoder_norm="decoder.layer_norm",
    source_table="encoder.embeddings.make_embedding.emb_luts.0.weight",
    target_table="decoder.embeddings.make_embedding.emb_luts.0.weight",
    output_embedding="generator.weight",
    output_bias="generator.bias",
)
PAD_PIECES = ("<blank>", "<pad>")
"""Spellings of the padding symbol."""
_ACTIVATIONS = {"relu": "relu", "gelu": "gelu"}
_POSITIONS = "{}.embeddings.make_embedding.pe.pe"
_IGNORED = ("*.pe.pe", "decoder.transformer_layers.*.mask")
_MUST_BE_OFF = (
    "copy_attn",
    "max_relative_positions",
    "relative_positions_buckets",
    "parallel_residual",
    "shared_layer_norm",
    "num_kv",
    "multiquery",
    "num_experts",
    "sliding_window",
    "src_feats_vocab",
    "quant_layers",
)
_MUST_BE = {
    "encoder_type": "transformer",
    "decoder_type": "transformer",
    "model_task": "seq2seq",
    "model_type": "text",
    "self_attn_type": "scaled-dot",
    "layer_norm": "standard",
    "generator_function": "softmax",
}
# a faster computation of the same attention
_SAME = {"self_attn_type": ("scaled-dot-flash",)}
_SEARCH_NOTE = (
    "a checkpoint of OpenNMT-py has no search settings, so the defaults of onmt_translate are "
    "used, such as beam 5; see `search` in config.json"
)


def read(path: Path, options: ReadOptions) -> ModelBundle:
    """Read a checkpoint. Raises `ExchangeError`, which may list several reasons."""
    settings, tensors, vocab = read_checkpoint(path)
    _refuse(settings, tensors, path)
    tables = TENSOR_NAMES.source_table, TENSOR_NAMES.target_table
    id_mappings = [
        _id_mapping(pieces, tensors.get(table))
        for pieces, table in zip(read_vocabularies(vocab), tables, strict=True)
    ]
    languages = options.source_language, options.target_language
    splitters = find_splitters(path.parent, options, languages)
    tokenizer = tokenizer_of(id_mappings, splitters, languages)
    notes = [SPACES_NOTE] * (splitters[0].kind == "spaces") + [_SEARCH_NOTE]
    start = start_symbol(settings, vocab)
    model = _read_transformer(settings, tensors, tokenizer.shared, start)
    search = {
        "beam": 5,
        "length_penalty": "power:1" if is_new(vocab) else "none",
        "max_length": "250" if is_new(vocab) else "100",
        "stop": "as-opennmt",
        "length_limit_policy": "keep",
    }
    name = f"{path} (OpenNMT-py)"
    return bundle_of(name, model, id_mappings, tokenizer, languages, search, notes, _IGNORED)


def read_checkpoint(path: Path) -> tuple[dict[str, Any], dict[str, Array], Any]:
    """Read settings, tensors and vocabularies without executing the file's content."""
    saved = read_torch_file(path)
    parts = ("model", "generator", "opt", "vocab")
    if not isinstance(saved, dict) or not all(saved.get(part) is not None for part in parts):
        raise ExchangeError(
            f"{path} must be a checkpoint of OpenNMT-py with {', '.join(parts)}, but is not; give "
            "the .pt file that onmt_train wrote."
        )
    tensors = _tensors(saved["model"], saved["generator"], path)
    return settings_of(saved["opt"]), tensors, saved["vocab"]


def is_new(vocab: Any) -> bool:
    """Return whether the words are stored as in version 3."""
    return isinstance(vocab, dict) and isinstance(vocab.get("src"), list)


def read_vocabularies(vocab: Any) -> tuple[list[str], list[str]]:
    """Read the vocabularies of both sides. Raises `ExchangeError` if their format is unknown."""
    named = vocab
    if isinstance(vocab, list):
        named = dict(pair for pair in vocab if isinstance(pair, tuple) and len(pair) == 2)
    pieces = [_pieces(named.get(side)) if isinstance(named, dict) else None for side in _SIDES]
    if pieces[0] is None or pieces[1] is None:
        raise ExchangeError(
            "A checkpoint of OpenNMT-py must list the words of both sides in a known format, but "
            "this one does not; heedful cannot import models with word features."
        )
    return pieces[0], pieces[1]


_SIDES = ("src", "tgt")


def _pieces(value: Any) -> list[str] | None:
    """Find the word list of one side."""
    for _ in range(6):
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            return value
        if isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[0], str):
            value = value[1]  # the pair of a name and its field
        elif isinstance(value, list) and len(value) == 1:
            value = value[0]  # a single field; further fields would be word features
        elif isinstance(value, OpaqueObject):
            state = value.state
            value = next((state[k] for k in ("itos", "fields", "vocab") if k in state), None)
        else:
            return None
    return None


def _tensors(model: Any, generator: Any, path: Path) -> dict[str, Array]:
    """Read the weights; the generator's weights get the same names for all versions."""
    named: dict[Any, Any] = dict(model) if isinstance(model, dict) else {}
    for name, tensor in (generator if isinstance(generator, dict) else {}).items():
        named[f"generator.{name}"] = tensor
    arrays = read_arrays(named, path)
    return {name.replace("generator.0.", "generator."): array for name, array in arrays.items()}


def _refuse(settings: Mapping[str, Any], tensors: Mapping[str, Array], path: Path) -> None:
    """Refuse settings that our model cannot express, with all reasons at once."""
    reasons = Problems()
    for name, wanted in _MUST_BE.items():
        value = settings.get(name, wanted)
        fine = value is None or value == wanted or value in _SAME.get(name, ())
        reasons.add_if(not fine, f"`{name}` is {str(value)[:40]!r} instead of {wanted!r}")
    for name in _MUST_BE_OFF:
        value = settings.get(name)
        reasons.add_if(bool(value), f"`{name}` is {str(value)[:40]}")
    activation = str(settings.get("pos_ffn_activation_fn") or "relu")
    reasons.add_if(
        activation not in _ACTIVATIONS,
        f"`pos_ffn_activation_fn` is {activation[:40]!r}, not relu or gelu",
    )
    reasons.add_if(
        any(name.endswith(".a_2") for name in tensors),
        "its norms are from version 0 of OpenNMT-py, which computes the standard deviation "
        "differently",
    )
    reasons.add_if(
        _layout(tensors) is None, "its positions are not sinusoids that are added to embeddings"
    )
    refuse_features(path, reasons)


def _layout(tensors: Mapping[str, Array]) -> str | None:
    """Recognize the layout of the position table, which is stored with the weights."""
    tables = [tensors.get(_POSITIONS.format(side)) for side in ("encoder", "decoder")]
    names = []
    for table in tables:
        if table is None or table.ndim != 3 or table.shape[2] % 2:
            return None
        rows = table[:200, 0]
        for name in ("interleaved", "halves"):
            if np.allclose(rows, SINUSOIDS[name](0, *rows.shape).numpy(), atol=1e-3):
                names.append(name)
    return names[0] if len(names) == 2 and names[0] == names[1] else None


def _id_mapping(pieces: list[str], table: Array | None) -> IdMapping:
    """Map the words of one side to our ids; duplicates get the id of the first."""
    numbers = first_ids(pieces)
    rows = max(len(pieces), 0 if table is None else (*table.shape, 0)[0])
    pad = next((piece for piece in PAD_PIECES if piece in numbers), None)
    others = {"unknown": "<unk>", "start": "<s>", "end": "</s>"}
    special = {name: piece if piece in numbers else None for name, piece in others.items()}
    return IdMapping.of(numbers, {"pad": pad, **special}, rows)


def start_symbol(settings: Mapping[str, Any], vocab: Any) -> str:
    """Return the value of `model.decoder_start`."""
    named = vocab.get("decoder_start_token") if isinstance(vocab, dict) else None
    token = str(named or settings.get("decoder_start_token") or "<s>")
    kinds = {"<s>": "symbol", "</s>": "end", **dict.fromkeys(PAD_PIECES, "pad")}
    if token not in kinds:
        raise ExchangeError(
            f"The decoder must begin with one of {', '.join(kinds)}, but this model's decoder "
            f"begins with {token[:40]!r}; heedful cannot express this model."
        )
    return kinds[token]


def _read_transformer(
    settings: Mapping[str, Any], tensors: Mapping[str, Array], shared: bool, start: str
) -> ForeignModel:
    """Read a Transformer."""
    layers = number_in(settings, "layers", 6)
    dropout = settings.get("dropout")
    first = dropout[0] if isinstance(dropout, list) and dropout else dropout
    source = tensors.get(TENSOR_NAMES.source_table)
    embeddings = bool(settings.get("share_embeddings")) and shared
    output = bool(settings.get("share_decoder_embeddings"))
    parts = (TENSOR_NAMES.query, TENSOR_NAMES.key, TENSOR_NAMES.value, TENSOR_NAMES.mixed)
    biases = tuple(f".{part}.bias" for part in parts)
    model = {
        "d_model": 512 if source is None else (*source.shape, 0, 0)[1],
        "d_ff": int(number_in(settings, "transformer_ff", 2048)),
        "heads": int(number_in(settings, "heads", 8)),
        "encoder_layers": int(_positive(settings, "enc_layers", layers)),
        "decoder_layers": int(_positive(settings, "dec_layers", layers)),
        "activation": _ACTIVATIONS[settings.get("pos_ffn_activation_fn") or "relu"],
        "dropout": float(number_in({"dropout": first}, "dropout", 0.1)),
        "norm_epsilon": float(number_in(settings, "norm_eps", 1e-6)),
        "positions": _layout(tensors),
        "tie_embeddings": "all" if embeddings and output else "output" if output else "none",
        "projection_bias": any(name.endswith(biases) for name in tensors),
        "output_bias": TENSOR_NAMES.output_bias in tensors,
        "decoder_start": start,
        "source_end": False,
    }
    return transformer_of(TENSOR_NAMES, tensors, model, ("pre", "pre"), (True, True))


def _positive(settings: Mapping[str, Any], name: str, default: int | float) -> int | float:
    """Read a positive number; older versions store -1 for the default."""
    value = number_in(settings, name, default)
    return value if value > 0 else default
