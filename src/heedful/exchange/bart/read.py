"""
Import of Hugging Face folders of BART's classes: BART, mBART, mBART-50, M2M100 and NLLB.

The import reads ``config.json`` (shape), the weights, ``generation_config.json`` (search) and the
files of the tokenizer (`heedful.exchange.bart.text`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from heedful.exchange.bart.classes import CLASSES, complete, model_settings
from heedful.exchange.bart.names import bart_map, tied_as
from heedful.exchange.bart.text import build_tokenizer, read_text_files
from heedful.exchange.bundle import weight_shapes
from heedful.exchange.formats import ModelBundle, Problems, ReadOptions, read_settings_file
from heedful.exchange.huggingface import settings as files
from heedful.exchange.huggingface.config_record import run_config
from heedful.exchange.huggingface.engine import TransformersReference, numbering_of
from heedful.exchange.huggingface.search import read_rule
from heedful.exchange.huggingface.weights import read_weights
from heedful.exchange.marian.names import BIAS, HEAD
from heedful.exchange.parity import ReferenceModel
from heedful.families.keymap import RowMap
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.special_symbols import END, PAD, START
from heedful.tokenization.tokenizer import Tokenizer


def read(path: Path, options: ReadOptions) -> ModelBundle:
    """Read a folder. Raises `ExchangeError`, which may list several reasons."""
    files.check_files(path, [], "BART")
    settings = complete(read_settings_file(path / "config.json"))
    _check_shape(settings, path)
    tensors = read_weights(path)
    files.check_sizes(settings, tensors, path)
    generation, padding = files.generation_settings(path, settings), settings["pad_token_id"]
    settings = files.with_special_ids(settings, generation)
    rows, positions = settings["vocab_size"], settings["max_position_embeddings"]
    text = read_text_files(path, settings["model_type"], rows)
    reasons = Problems()
    forced = _first_token(generation, settings, text.tokenizer_class, reasons)
    wanted = settings.get("decoder_start_token_id")
    tokenizer, notes = build_tokenizer(text, rows, options, forced, path, wanted)
    id_mapping = numbering_of(tokenizer, 0)
    start = _start(settings, tokenizer, reasons)
    files.check_head(settings, tensors, HEAD, reasons)
    # sinusoids begin after the padding id of config.json, even if `generate` uses another id
    is_learned = CLASSES[settings["model_type"]].is_learned
    wanted = id_mapping.origins[PAD]
    reasons.add_if(
        not is_learned and padding != wanted,
        f"pad_token_id of config.json must be {wanted}, but is {padding!r}",
    )
    if not tokenizer.languages:
        _check_start_symbol(forced, id_mapping, reasons)
    generation = {name: v for name, v in generation.items() if name != "forced_bos_token_id"}
    rule = read_rule(generation, id_mapping, positions, reasons)
    reasons.refuse(f"the model in {path} cannot be imported", files.ADVICE)
    tie, tables = tied_as(bool(settings["tie_word_embeddings"]), tensors)
    has_bias = CLASSES[settings["model_type"]].has_bias and bool(_bias(tensors).any())
    is_before = tokenizer.frame is not None and tokenizer.frame.source == "before"
    model = model_settings(settings, tie, has_bias)
    model |= {"decoder_start": start, "source_end": is_before}
    search = rule.search.model_copy(update={"max_source_length": positions - is_before})
    longest = positions - 1 if is_learned else min(256, positions - 1)
    config = run_config(model, search, tokenizer, longest)
    rows_of = RowMap(id_mapping.origins, id_mapping.rows)
    key_map = bart_map(config.model, tables, rows_of, positions)
    weights = key_map.to_ours(tensors, weight_shapes(config, tokenizer), path)
    return ModelBundle(config, weights, tokenizer, (*rule.notes, *notes), key_map.use_of(tensors))


def open_engine(path: Path, model: ModelBundle) -> ReferenceModel:
    """Open the original with transformers, or raise `MissingExtra`."""
    settings = read_settings_file(path / "config.json")
    text = read_text_files(path, settings["model_type"], settings["vocab_size"])
    kind = CLASSES[settings["model_type"]]
    tokenizer = model.tokenizer
    assert tokenizer.frame is not None
    languages = {}
    if tokenizer.languages:
        pair = (tokenizer.source_language, tokenizer.target_language)
        if text.tokenizer_class != "M2M100Tokenizer":  # other classes name a language by its token
            pair = (text.codes[pair[0]], text.codes[pair[1]])
        languages = {"src_lang": pair[0], "tgt_lang": pair[1]}
    token = tokenizer.frame.token(tokenizer.target_language)
    name = "decoder_start_token_id" if tokenizer.frame.target == "start" else "forced_bos_token_id"
    search = {name: numbering_of(tokenizer, 0).origins[token]}
    return TransformersReference(
        path, tokenizer, kind.model, text.tokenizer_class, search, languages
    )


def _check_shape(settings: Mapping[str, Any], path: Path) -> None:
    """Refuse models of other classes, and settings from which no model can be built."""
    reasons = Problems()
    files.check_shape(settings, CLASSES, reasons)
    padding = settings["pad_token_id"]
    reasons.add_if(
        type(padding) is not int or not 0 <= padding < 1 << 20,
        f"pad_token_id must be the id of a symbol, but is {padding!r}",
    )
    reasons.refuse(
        f"{path / 'config.json'} does not describe a model of BART's classes", files.ADVICE
    )


def _first_token(
    generation: Mapping[str, Any],
    settings: Mapping[str, Any],
    tokenizer_class: str,
    reasons: Problems,
) -> int | None:
    """Read the id of the token that translations into the default language begin with."""
    forced = generation.get("forced_bos_token_id", settings.get("forced_bos_token_id"))
    if tokenizer_class == "MBartTokenizer":
        reasons.add_if(
            forced is not None,
            "forced_bos_token_id must be unset for MBartTokenizer, whose models start decoding "
            f"with the language token, but is {forced!r}",
        )
        forced = settings.get("decoder_start_token_id")
    reasons.add_if(
        forced is not None and type(forced) is not int,
        f"forced_bos_token_id must be a token id, but is {forced!r}",
    )
    return forced if type(forced) is int else None


def _check_start_symbol(forced: int | None, id_mapping: IdMapping, reasons: Problems) -> None:
    """Refuse a forced first token that is not the start symbol, in a model without languages."""
    start = id_mapping.origins[START]
    reasons.add_if(
        forced not in (None, start),
        f"forced_bos_token_id must be the id of the start symbol, {start}, but is {forced!r}",
    )


def _start(settings: Mapping[str, Any], tokenizer: Tokenizer, reasons: Problems) -> str:
    """Return the value of `model.decoder_start`, and check the special ids."""
    id_mapping, frame = numbering_of(tokenizer, 0), tokenizer.frame
    assert frame is not None
    for name, number in (("eos_token_id", END), ("pad_token_id", PAD)):
        value, wanted = settings.get(name), id_mapping.origins[number]
        reasons.add_if(
            value not in (wanted, [wanted]), f"{name} must be {wanted}, but is {value!r}"
        )
    if frame.target == "start":
        return "symbol"
    wanted = settings.get("decoder_start_token_id")
    return files.check_start(wanted, id_mapping, "the start symbol", reasons)


def _bias(tensors: Mapping[str, Tensor]) -> Tensor:
    """Return the bias of the logits; zero if the model has none."""
    return tensors.get(BIAS, Tensor([0.0]))
