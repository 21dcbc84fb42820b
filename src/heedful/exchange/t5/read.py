"""
Import of Hugging Face T5 folders: T5 1.0 and 1.1, Flan-T5 and mT5.

The import reads ``config.json`` (shape and tasks), the weights, ``generation_config.json`` (search)
and ``spiece.model`` with ``tokenizer_config.json`` (text).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.config.search import SearchConfig
from heedful.exchange.bundle import weight_shapes
from heedful.exchange.formats import ModelBundle, Problems, ReadOptions, read_settings_file
from heedful.exchange.huggingface.config_record import run_config
from heedful.exchange.huggingface.engine import TransformersReference
from heedful.exchange.huggingface.search import read_rule
from heedful.exchange.huggingface.settings import (
    ADVICE,
    check_files,
    check_head,
    check_sizes,
    check_start,
    check_type,
    generation_settings,
    optional_settings,
    with_special_ids,
)
from heedful.exchange.huggingface.unigram import FILE
from heedful.exchange.huggingface.weights import read_weights
from heedful.exchange.parity import ReferenceModel
from heedful.exchange.t5.names import HEAD, t5_map
from heedful.exchange.t5.settings import NUMBERS, check_settings, complete, model_settings
from heedful.exchange.t5.text import (
    MODEL,
    build_tokenizer,
    read_task,
    read_vocabulary,
    task_notes,
    task_of_prefix,
)
from heedful.families.keymap import RowMap
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.special_symbols import END

USES = ("task", "source_prefix")
"""Options of this format."""
CLASSES = {
    "t5": ("T5ForConditionalGeneration", "T5Tokenizer"),
    "mt5": ("MT5ForConditionalGeneration", "T5Tokenizer"),
}
"""Classes of model and tokenizer, by `model_type`."""
# The class has no maximum length, so larger limits of sources are ignored.
_MOST_TOKENS = 1 << 14


def read(path: Path, options: ReadOptions) -> ModelBundle:
    """Read a folder. Raises `ExchangeError`, which may list several reasons."""
    check_files(path, [FILE if (path / FILE).is_file() else MODEL], "T5")
    settings = complete(read_settings_file(path / "config.json"))
    reasons = Problems()
    check_type(settings, CLASSES, reasons)
    check_settings(settings, reasons)
    reasons.refuse(f"{path / 'config.json'} does not describe a T5 model", ADVICE)
    tensors = read_weights(path)
    layers = ("num_layers", "num_decoder_layers")
    others = ("vocab_size", "relative_attention_max_distance", *layers)
    widths = [name for name in NUMBERS if name not in others]
    check_sizes(settings, tensors, path, widths, layers)
    spelled = optional_settings(path / "tokenizer_config.json")
    generation = generation_settings(path, settings)
    settings = with_special_ids(settings, generation)
    task = read_task(settings, options, reasons)
    reasons.refuse(
        f"the model in {path} cannot be imported with these options",
        "Give either a task of the model with --task, or a prefix with --source-prefix",
    )
    id_mapping, content = read_vocabulary(path, settings, spelled)
    start = _start(settings, id_mapping, reasons)
    check_head(settings, tensors, HEAD, reasons)
    rule = read_rule({**generation, **task.search}, id_mapping, _MOST_TOKENS, reasons)
    reasons.refuse(f"the model in {path} cannot be imported", ADVICE)
    tokenizer = build_tokenizer(id_mapping, content, task)
    search = rule.search.model_copy(update={"max_source_length": _longest(settings, spelled)})
    model = model_settings(settings, tensors) | {"decoder_start": start}
    config = run_config(model, search, tokenizer)
    rows = RowMap(id_mapping.origins, id_mapping.rows)
    key_map = t5_map(config.model, rows)
    weights = key_map.to_ours(tensors, weight_shapes(config, tokenizer), path)
    notes = (*rule.notes, *task_notes(settings, task), *_length_notes(generation, task.search))
    return ModelBundle(config, weights, tokenizer, notes, key_map.use_of(tensors))


def open_engine(path: Path, model: ModelBundle) -> ReferenceModel:
    """Open the original with transformers, or raise `MissingExtra`."""
    settings = complete(read_settings_file(path / "config.json"))
    search = dict(task_of_prefix(settings, model.tokenizer.source_prefix).search)
    if settings["num_decoder_layers"] > settings["num_layers"]:
        search["use_cache"] = False  # transformers 5.23 sizes the cache by the encoder's layers
    return TransformersReference(path, model.tokenizer, *CLASSES[settings["model_type"]], search)


def _start(settings: Mapping[str, Any], id_mapping: IdMapping, reasons: Problems) -> str:
    """Return the value of `model.decoder_start`, and check the id of the end symbol."""
    end = settings.get("eos_token_id")
    reasons.add_if(
        end != id_mapping.origins[END],
        f"eos_token_id must be the single id of the end symbol, but is {end!r}",
    )
    wanted = settings.get("decoder_start_token_id")
    if wanted is None:  # the class then begins with padding
        wanted = settings.get("pad_token_id")
    return check_start(wanted, id_mapping, "an extra symbol", reasons)


def _longest(settings: Mapping[str, Any], spelled: Mapping[str, Any]) -> int:
    """Return the maximum number of source subwords."""
    usual = SearchConfig().max_source_length
    for value in (spelled.get("model_max_length"), settings.get("n_positions")):
        if type(value) is int and 1 < value <= _MOST_TOKENS:
            return max(value - 1, usual)
    return usual


def _length_notes(generation: Mapping[str, Any], search: Mapping[str, Any]) -> tuple[str, ...]:
    """Warn that the short default limit of `generate` applies if the folder sets no limit."""
    named = {**generation, **search}
    if any(named.get(name) is not None for name in ("max_length", "max_new_tokens")):
        return ()
    return (
        "the folder sets no maximum length of translations, so the default of transformers' "
        "generate, 20 subwords, is used; when you translate, --max-length sets another limit",
    )
