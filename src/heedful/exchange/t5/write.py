"""
Export as a folder that Hugging Face's `T5ForConditionalGeneration` and `T5Tokenizer` load.

The model must have been imported from this class: ids, sentencepiece model and sentinels are the
original ones. Weights, search and prefix come from the run.
"""

from pathlib import Path
from typing import Any

from heedful.exchange.formats import (
    ExportResult,
    ModelBundle,
    Problems,
    WriteOptions,
    write_settings_file,
)
from heedful.exchange.huggingface.search import write_rule
from heedful.exchange.huggingface.settings import STARTS
from heedful.exchange.huggingface.weights import write_model
from heedful.exchange.t5.names import t5_map
from heedful.exchange.t5.read import open_engine
from heedful.exchange.t5.settings import check_model, config_of
from heedful.exchange.t5.text import MODEL, count_sentinels
from heedful.families.keymap import RowMap
from heedful.files import write_synced
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.special_symbols import END, PAD, UNKNOWN
from heedful.tokenization.tokenizer import Tokenizer

EXPRESSES = frozenset(
    f"model.{name}"
    for name in (
        *("norm_kind", "gated", "feed_forward_bias", "scale_output", "positions"),
        *("tie_embeddings", "attention.score"),
    )
)
"""Settings beyond the paper's Transformer that the class has; `check_model` checks their values."""
__all__ = ["EXPRESSES", "open_engine", "write"]
_ADVICE = "T5's class has one fixed architecture; import a T5 model, and fine-tune it"


def write(model: ModelBundle, folder: Path, options: WriteOptions) -> ExportResult:
    """Write a model. Raises `ExchangeError` with all reasons at once."""
    config, tokenizer, reasons = model.config.model, model.tokenizer, Problems()
    check_model(config, reasons)
    subwords = tokenizer.models[0]
    is_imported = isinstance(subwords, ImportedModel) and subwords.kind.endswith("sentencepiece")
    reasons.add_if(
        not is_imported,
        f"the tokenizer must be an imported sentencepiece model, but is {tokenizer.kind}",
    )
    reasons.add_if(not tokenizer.shared, "source and target must share one vocabulary")
    reasons.refuse("T5's class cannot express this model", _ADVICE)
    assert isinstance(subwords, ImportedModel)
    id_mapping = subwords.id_mapping
    theirs = id_mapping.theirs
    rows = RowMap(id_mapping.origins, id_mapping.rows)
    special = {
        "pad_token_id": theirs[PAD],
        "eos_token_id": theirs[END],
        "decoder_start_token_id": theirs[STARTS[config.decoder_start]],
    }
    # the class has no maximum length, so no limit is lowered for it
    search = model.config.search
    positions = max(options.positions, search.max_source_length + 1)
    sizes = id_mapping.rows, id_mapping.rows
    generation, rule = write_rule(search, sizes, theirs, positions)
    if rule.search.length_limit_policy == "end":
        generation["forced_eos_token_id"] = theirs[END]
    settings = config_of(config) | {"vocab_size": id_mapping.rows} | special
    if prefix := tokenizer.source_prefix:
        settings["task_specific_params"] = {_task(tokenizer): {"prefix": prefix}}
    tensors = t5_map(config, rows).to_theirs(model.weights)
    write_model(folder, tensors, settings, generation | special)
    write_synced(folder / MODEL, subwords.files()["model"])
    write_settings_file(folder / "tokenizer_config.json", _tokenizer_settings(tokenizer, options))
    return ExportResult(rule.search, rule.notes)


def _task(tokenizer: Tokenizer) -> str:
    """Name the task of a prefix."""
    source, target = tokenizer.source_language, tokenizer.target_language
    return f"translation_{source}_to_{target}" if source and target else "translation"


def _tokenizer_settings(tokenizer: Tokenizer, options: WriteOptions) -> dict[str, Any]:
    """Build `tokenizer_config.json`."""
    pieces = tokenizer.pieces_target(range(END + 1))
    return {
        "tokenizer_class": "T5Tokenizer",
        "pad_token": pieces[PAD],
        "unk_token": pieces[UNKNOWN],
        "eos_token": pieces[END],
        "extra_ids": count_sentinels(tokenizer),
        "model_max_length": options.positions,
    }
