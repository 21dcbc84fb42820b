"""Tokenizer files of BART's classes, as transformers reads them: subwords, ids and languages."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.exchange.bart.bytes import CLASSES as BYTE_CLASSES
from heedful.exchange.bart.bytes import MERGES
from heedful.exchange.bart.classes import CLASSES
from heedful.exchange.bart.renumber import MASK
from heedful.exchange.bart.text import MODEL, VOCABULARY, WHOLE
from heedful.exchange.bart.tokenizers import (
    is_wmt21,
    new_languages,
    notes_on,
    tokenizer_class,
)
from heedful.exchange.formats import Problems, write_settings_file
from heedful.files import write_synced
from heedful.tokenization.imported_model import BYTE_KINDS, ImportedModel
from heedful.tokenization.model_proto import charsmap_of, kind_of
from heedful.tokenization.sentencepiece_model import load_processor
from heedful.tokenization.special_symbols import END, PAD, START, UNKNOWN
from heedful.tokenization.tokenizer import Tokenizer


def check_text(tokenizer: Tokenizer, kind: str, reasons: Problems) -> None:
    """Add a reason for each feature that the tokenizer's class lacks; `kind`: a `model_type`."""
    model, frame = tokenizer.models[0], tokenizer.frame
    cutter = "bytes" if kind == "bart" else "sentencepiece"
    fits = isinstance(model, ImportedModel) and model.kind.endswith(cutter)
    has_tokens = frame is not None and bool(frame.languages) == (kind != "bart")
    reasons.add_if(
        not fits or not tokenizer.shared or not has_tokens,
        f"the tokenizer must come from an imported {CLASSES[kind].title} model, but is of kind "
        f"{tokenizer.kind}",
    )
    reasons.add_if(
        frame is not None and kind == "m2m_100" and frame.target == "start",
        "M2M100's class does not start decoding with the language token",
    )
    if fits and has_tokens and kind == "m2m_100":
        source, new = tokenizer.source_language, new_languages(tokenizer, kind)
        reasons.add_if(
            tokenizer_class(tokenizer, kind) == "M2M100Tokenizer" and source in new,
            f"M2M100Tokenizer has a fixed list of source languages, without {source}, and "
            "NllbTokenizer needs a row in the embedding table for each byte-pair subword",
        )


def write_text(tokenizer: Tokenizer, kind: str, folder: Path, positions: int) -> tuple[str, ...]:
    """Write the files, and return notes on the languages that a class does not list."""
    model = tokenizer.models[0]
    assert isinstance(model, ImportedModel)  # `check_text` refuses other models
    assert tokenizer.frame is not None
    if kind == "bart":
        _write_bytes(model, folder, positions)
        return ()
    content = model.files()["model"]
    write_synced(folder / MODEL, content)
    numbers = model.id_mapping.vocabulary
    tokens = {code: model.piece(n) for code, n in tokenizer.frame.languages.items()}
    languages, name = [*tokens.values()], tokenizer_class(tokenizer, kind)
    new = new_languages(tokenizer, kind)
    pair = (tokenizer.source_language, tokenizer.target_language)
    if name != "M2M100Tokenizer":  # other classes name a language by its token
        pair = (tokens[pair[0]], tokens[pair[1]])
    record: dict[str, Any] = {
        "tokenizer_class": name,
        "src_lang": pair[0],
        "tgt_lang": pair[1],
        "bos_token": model.piece(START),
        "pad_token": model.piece(PAD),
        "eos_token": model.piece(END),
        "unk_token": model.piece(UNKNOWN),
        "model_max_length": positions,
    }
    if name == "M2M100Tokenizer":
        record["language_codes"] = "wmt21" if is_wmt21([*tokens]) else "m2m100"
        plain = {piece: n for piece, n in numbers.items() if piece not in languages}
        write_settings_file(folder / VOCABULARY, plain)
        if new:
            added = {str(numbers[tokens[code]]): _special_token(tokens[code], {}) for code in new}
            record["added_tokens_decoder"] = added
    else:
        if name == "MBart50Tokenizer" and tokenizer.source_language in new:
            del record["src_lang"]  # while loading, the class looks up the language in its own list
        record["extra_special_tokens"] = languages
        if tokenizer.frame.source == "behind" and name == "NllbTokenizer":
            record["legacy_behaviour"] = True
        special = [model.piece(number) for number in (START, PAD, END, UNKNOWN)]
        tokenizer_json = _tokenizer_file(content, numbers, special, languages, name)
        write_settings_file(folder / WHOLE, tokenizer_json)
    write_settings_file(folder / "tokenizer_config.json", record)
    return notes_on(name, kind, [tokens[code] for code in new])


def _write_bytes(model: ImportedModel, folder: Path, positions: int) -> None:
    """Write the files of BART's tokenizer."""
    id_mapping = model.id_mapping
    write_synced(folder / MERGES, model.files()["merges"])
    write_settings_file(folder / VOCABULARY, id_mapping.vocabulary)
    special = {
        "bos_token": START,
        "cls_token": START,
        "pad_token": PAD,
        "eos_token": END,
        "sep_token": END,
        "unk_token": UNKNOWN,
    }
    record = {
        "tokenizer_class": BYTE_CLASSES[0],
        **{name: id_mapping.pieces[number] for name, number in special.items()},
        "add_prefix_space": model.kind == BYTE_KINDS[1],
        "model_max_length": positions,
    }
    write_settings_file(folder / "tokenizer_config.json", record)


def _tokenizer_file(
    content: bytes,
    numbers: Mapping[str, int],
    special: list[str],
    languages: list[str],
    name: str,
) -> dict[str, Any]:
    """Build `tokenizer.json`."""
    processor = load_processor(content)
    size = processor.get_piece_size()
    pieces = processor.id_to_piece(list(range(size)))
    scores = {piece: processor.get_score(n) for n, piece in enumerate(pieces)}
    metaspace = {
        "type": "Metaspace",
        "replacement": "▁",
        "prepend_scheme": "always",
        "split": True,
    }
    normalizer = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    steps: list[dict[str, Any]] = [normalizer]
    if charsmap := charsmap_of(content):
        encoded = base64.b64encode(charsmap).decode()
        steps = [{"type": "Precompiled", "precompiled_charsmap": encoded}, normalizer]
    before: dict[str, Any] = metaspace
    if name == "MBartTokenizer":  # this class splits at any white space and does not normalize text
        steps = []
        before = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace]}
    extra = [*special, *languages, *([MASK] if MASK in numbers else [])]
    added = [
        _special_token(token, {"id": numbers[token]})
        for token in sorted(extra, key=numbers.__getitem__)
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": steps} if steps else None,
        "pre_tokenizer": before,
        "post_processor": None,
        "decoder": metaspace,
        "model": _model(kind_of(content), numbers, scores, special),
    }


def _special_token(token: str, more: Mapping[str, int]) -> dict[str, Any]:
    """Describe a special token."""
    return {
        **more,
        "content": token,
        "single_word": False,
        "lstrip": token == MASK,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }


def _model(
    kind: str, numbers: Mapping[str, int], scores: Mapping[str, float], special: list[str]
) -> dict[str, Any]:
    """Convert the subwords of a sentencepiece model to the format of `tokenizers`."""
    if kind == "unigram":
        by_number = {number: piece for piece, number in numbers.items()}
        rows = range(max(by_number) + 1)
        shown = [by_number.get(number, f"<row_{number}>") for number in rows]
        vocabulary = [
            [piece, 0.0 if piece in special else float(scores.get(piece, 0.0))] for piece in shown
        ]
        unknown = numbers[special[3]]
        return {"type": "Unigram", "unk_id": unknown, "vocab": vocabulary, "byte_fallback": False}
    known = {p: n for p, n in numbers.items() if p in scores or p in special}
    merges = []
    for piece in sorted(known, key=lambda piece: -scores.get(piece, float("-inf"))):
        pairs = [(piece[:place], piece[place:]) for place in range(1, len(piece))]
        fitting = [pair for pair in pairs if pair[0] in known and pair[1] in known]
        merges += sorted(fitting, key=lambda pair: (known[pair[0]], known[pair[1]]))
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": special[3],
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": dict(numbers),
        "merges": [list(pair) for pair in merges],
    }
