"""
Export as a folder that Hugging Face's BART, mBART, M2M100 and NLLB classes load.

The norms and the positions of the model determine the class. Ids, subwords and languages are those
of the imported model, but `heedful.exchange.bart.renumber` reorders added subwords and languages.
Weights, search settings and the pair of languages come from the run.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from heedful.exchange.bart import read
from heedful.exchange.bart.classes import CLASSES, check_model, class_of
from heedful.exchange.bart.names import bart_map, written_tables
from heedful.exchange.bart.renumber import renumber_pieces
from heedful.exchange.bart.write_text import check_text, write_text
from heedful.exchange.formats import (
    ExportResult,
    ModelBundle,
    Problems,
    WriteOptions,
)
from heedful.exchange.huggingface.config_record import config_record
from heedful.exchange.huggingface.engine import numbering_of
from heedful.exchange.huggingface.search import write_rule
from heedful.exchange.huggingface.settings import STARTS
from heedful.exchange.huggingface.weights import write_model
from heedful.exchange.marian.names import BIAS
from heedful.exchange.parity import ReferenceModel
from heedful.families.keymap import RowMap
from heedful.tokenization.special_symbols import END, PAD, START

EXPRESSES = frozenset(
    ("model.embedding_norm", "model.tie_embeddings", "languages of the tokenizer")
)
"""Settings beyond the paper's Transformer that the classes can express."""
_ADVICE = "Import a model of one of BART's classes, and fine-tune it"


def write(model: ModelBundle, folder: Path, options: WriteOptions) -> ExportResult:
    """Write a model. Raises `ExchangeError` with all reasons at once."""
    config, tokenizer, reasons = model.config.model, renumber_pieces(model.tokenizer), Problems()
    kind = class_of(config)
    reasons.add_if(
        kind is None,
        "model.norm and model.positions must be pre and halves, pre and learned, or post and "
        f"learned, but are {config.norm} and {config.positions}",
    )
    if kind is not None:
        check_model(config, CLASSES[kind], reasons)
        check_text(tokenizer, kind, reasons)
    reasons.refuse("BART's classes cannot express this model", _ADVICE)
    assert kind is not None
    assert tokenizer.frame is not None
    id_mapping = numbering_of(tokenizer, 0)
    theirs = id_mapping.theirs
    # the number of rows in a table of learned positions does not change
    is_learned = CLASSES[kind].is_learned
    positions = model.config.data.max_length + 1 if is_learned else options.positions
    generation, rule = write_rule(
        model.config.search, (id_mapping.rows, id_mapping.rows), theirs, positions
    )
    language = theirs[tokenizer.frame.token(tokenizer.target_language)]
    special: dict[str, Any] = {
        "bos_token_id": theirs[START],
        "pad_token_id": theirs[PAD],
        "eos_token_id": theirs[END],
        "decoder_start_token_id": theirs[STARTS.get(config.decoder_start, END)],
    }
    if tokenizer.frame.target == "start":
        special["decoder_start_token_id"] = language
    else:
        generation["forced_bos_token_id"] = language
    if rule.search.length_limit_policy == "end":
        generation["forced_eos_token_id"] = theirs[END]
    rows = RowMap(id_mapping.origins, id_mapping.rows)
    tables, copies = written_tables(config.tie_embeddings)
    tensors = bart_map(config, tables, rows, positions).to_theirs(model.weights)
    tensors |= {copy: tensors[original].clone() for copy, original in copies.items()}
    if CLASSES[kind].has_bias:
        tensors[BIAS] = tensors.get(BIAS, torch.zeros(id_mapping.rows)).reshape(1, -1)
    settings = config_record(config, CLASSES[kind].model, kind, positions)
    settings |= {"vocab_size": id_mapping.rows} | special
    settings["tie_word_embeddings"] = config.tie_embeddings == "all"
    write_model(folder, tensors, settings, generation | special)
    notes = write_text(tokenizer, kind, folder, positions)
    return ExportResult(rule.search, (*rule.notes, *notes))


def open_engine(folder: Path, model: ModelBundle) -> ReferenceModel:
    """Open the exported model with transformers, or raise `MissingExtra`."""
    return read.open_engine(folder, replace(model, tokenizer=renumber_pieces(model.tokenizer)))
