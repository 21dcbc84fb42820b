"""
The tokenizers in folders of BART's classes: subwords, their ids and the tokens of languages.

::

    M2M100       vocab.json, sentencepiece.bpe.model     __en__ after the vocabulary
    NLLB         sentencepiece.bpe.model, and/or         eng_Latn
    mBART(-50)     tokenizer.json                        en_XX
    BART         vocab.json, merges.txt, and/or          none; start symbol before text
                   tokenizer.json

Without vocab.json and tokenizer.json, ids are in fairseq's order: start, padding, end, unknown,
pieces, languages, mask. The pieces begin with the fourth piece of the sentencepiece model.
"""

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import ExchangeError, SettingError
from heedful.exchange.bart import languages
from heedful.exchange.bart.bytes import CLASSES as BYTE_CLASSES
from heedful.exchange.bart.bytes import is_spaced, read_bytes
from heedful.exchange.formats import ReadOptions, read_settings_file
from heedful.exchange.huggingface.settings import (
    check_vocabulary,
    id_mapping_of,
    optional_settings,
    special_symbols,
)
from heedful.files import read_within
from heedful.text.language_codes import BARE_CODE, look_up
from heedful.tokenization.frame import Frame
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.model_proto import build_model
from heedful.tokenization.sentencepiece_model import load_processor
from heedful.tokenization.special_symbols import START
from heedful.tokenization.tokenizer import Tokenizer

MODEL, VOCABULARY, WHOLE = "sentencepiece.bpe.model", "vocab.json", "tokenizer.json"
_TOKEN = re.compile(r"__([\w-]+)__")


@dataclass(frozen=True)
class Text:
    """The vocabulary, languages and special symbols in the files of a folder."""

    tokenizer_class: str
    """Class of the tokenizer in transformers."""
    numbers: Mapping[str, int]
    """Ids by token."""
    codes: Mapping[str, str]
    """Tokens of the languages by code."""
    special: Mapping[str, str]
    """Spellings of the special symbols."""
    content: bytes
    """Content of a sentencepiece model, or, for BART, of ``merges.txt``."""
    spelled: Mapping[str, Any]
    """Content of `tokenizer_config.json`."""


def read_text_files(path: Path, model_type: str, rows: int) -> Text:
    """Read vocabulary, subwords and languages; `rows`: number of rows in the embedding table."""
    spelled = optional_settings(path / "tokenizer_config.json")
    special = special_symbols(spelled, ("start", "pad", "end", "unknown"))
    kind = _tokenizer_class(path, model_type, spelled)
    tokenizer_json = optional_settings(path / WHOLE)
    if model_type == "bart":
        listed, content = read_bytes(path, spelled, special, tokenizer_json)
        numbers = check_vocabulary(listed, path / (WHOLE if tokenizer_json else VOCABULARY))
        return Text(BYTE_CLASSES[0], numbers, {}, special, content, spelled)
    has_model = (path / MODEL).is_file()
    if not has_model and not tokenizer_json:
        raise ExchangeError(
            f"{path} must contain the tokenizer of the model ({MODEL} or {WHOLE}), but contains "
            "neither; copy the whole folder again."
        )
    content = (
        read_within(path / MODEL) if has_model else _model_of(tokenizer_json, special, path / WHOLE)
    )
    if kind == "M2M100Tokenizer":
        numbers = check_vocabulary(read_settings_file(path / VOCABULARY), path / VOCABULARY)
        names = languages.WMT21 if spelled.get("language_codes") == "wmt21" else languages.M2M100
        first = len(numbers)
        codes = {code: f"__{code}__" for code in names.split()}
        numbers |= {token: first + number for number, token in enumerate(codes.values())}
        for token, number in _added_tokens(spelled, path).items():
            if name := _TOKEN.fullmatch(token):
                codes[name[1]], numbers[token] = token, number
    else:
        numbers = _numbers_of(tokenizer_json, path) if tokenizer_json else {}
        numbers = numbers or _fairseq_numbers(content, special, _languages(path, kind, spelled))
        known = {*_languages(path, kind, spelled)}
        tokens = [name for name in numbers if name in known or BARE_CODE.fullmatch(name)]
        codes = {_code_of(token): token for token in tokens}
    numbers = {token: number for token, number in numbers.items() if number < rows}
    codes = {code: token for code, token in codes.items() if token in numbers}
    if not codes:
        raise ExchangeError(
            f"{path} must have language tokens, such as those of {kind}, but its vocabulary has "
            "none; copy the whole folder again."
        )
    return Text(kind, numbers, codes, special, content, spelled)


def build_tokenizer(
    text: Text,
    rows: int,
    options: ReadOptions,
    forced: int | None,
    path: Path,
    start: object = None,
) -> tuple[Tokenizer, tuple[str, ...]]:
    """
    Build the tokenizer, and notes for the user on unset languages or an unset start symbol.

    `forced`: id of the first token that `generate` forces, if the settings name a token. `start`:
    id of the token that the decoder starts with.
    """
    id_mapping = id_mapping_of(f"the vocabulary of {path}", text.numbers, text.special, rows)
    if text.tokenizer_class == BYTE_CLASSES[0]:
        return _without_languages(text, id_mapping, options, forced, start)
    ids = {code: id_mapping.ours[text.numbers[token]] for code, token in text.codes.items()}
    is_mbart = text.tokenizer_class == "MBartTokenizer"
    is_code_last = is_mbart or bool(text.spelled.get("legacy_behaviour"))
    frame = Frame("behind" if is_code_last else "before", "start" if is_mbart else "first", ids)
    by_number = {text.numbers[token]: code for code, token in text.codes.items()}
    model = ImportedModel(id_mapping, "sentencepiece", text.content)
    pair, notes = _pair(frame, text.spelled, by_number.get(forced or -1, ""), options)
    tokenizer = Tokenizer(model, source_language=pair[0], target_language=pair[1], frame=frame)
    return tokenizer, notes


def _without_languages(
    text: Text, id_mapping: IdMapping, options: ReadOptions, forced: int | None, start: object
) -> tuple[Tokenizer, tuple[str, ...]]:
    """Build BART's tokenizer: sources and translations begin with the start symbol."""
    starts_itself = forced is None and start == id_mapping.origins[START]
    cutter = "spaced-bytes" if is_spaced(text.spelled) else "bytes"
    tokenizer = Tokenizer(
        ImportedModel(id_mapping, cutter, text.content),
        source_language=options.source_language,
        target_language=options.target_language,
        frame=Frame("before", "start" if starts_itself else "first"),
    )
    note = (
        "the original's settings do not force the start symbol, but heedful begins every "
        "translation with it"
    )
    return tokenizer, () if starts_itself or forced is not None else (note,)


def _pair(
    frame: Frame, spelled: Mapping[str, Any], forced: str, options: ReadOptions
) -> tuple[tuple[str, str], tuple[str, ...]]:
    """Choose the languages: the user's, else the folder's, else English and another language."""
    known = [*frame.languages]
    try:
        source = options.source_language and frame.code(
            options.source_language, "--source-language"
        )
        target = options.target_language and frame.code(
            options.target_language, "--target-language"
        )
    except SettingError as error:
        raise ExchangeError(str(error)) from error
    named = bool(source and target)
    english = look_up("en", known) or known[0]
    source = source or look_up(str(spelled.get("src_lang") or ""), known) or english
    target = target or look_up(str(spelled.get("tgt_lang") or ""), known) or forced
    if not target:
        others = (look_up(code, known) for code in ("en", "fr", "de"))
        target = next((code for code in others if code and code != source), known[-1])
    note = (
        f"the model has {len(known):,} languages; this run translates from {source} to {target} "
        "unless --from-language and --to-language say otherwise"
    )
    return (source, target), () if named else (note,)


def _tokenizer_class(path: Path, model_type: str, spelled: Mapping[str, Any]) -> str:
    """Find the name of the tokenizer's class."""
    class_name = str(spelled.get("tokenizer_class") or "").removesuffix("Fast")
    if model_type == "m2m_100":
        has_model = (path / VOCABULARY).is_file() and (path / MODEL).is_file()
        return "M2M100Tokenizer" if has_model and class_name != "NllbTokenizer" else "NllbTokenizer"
    return "MBart50Tokenizer" if class_name == "MBart50Tokenizer" else "MBartTokenizer"


def _languages(path: Path, kind: str, spelled: Mapping[str, Any]) -> Sequence[str]:
    """List the languages that the folder names, or else the languages of the class."""
    more = optional_settings(path / "special_tokens_map.json")
    for part in (spelled, more):
        for name in ("extra_special_tokens", "additional_special_tokens"):
            listed = part.get(name)
            tokens = [str(token) for token in listed] if isinstance(listed, list) else []
            if codes := [t for t in tokens if BARE_CODE.fullmatch(t) or _TOKEN.fullmatch(t)]:
                return codes
    usual = {"NllbTokenizer": languages.NLLB, "MBart50Tokenizer": languages.MBART50}
    return usual.get(kind, languages.MBART).split()


def _code_of(token: str) -> str:
    """Return the language code that a token stands for."""
    name = _TOKEN.fullmatch(token)
    return name[1] if name else token


def _added_tokens(spelled: Mapping[str, Any], path: Path) -> dict[str, int]:
    """Read the ids of tokens that were added to a tokenizer without `tokenizer.json`."""
    added = spelled.get("added_tokens_decoder")
    numbers: dict[Any, Any] = {}
    for number, token in added.items() if isinstance(added, dict) else ():
        if isinstance(token, dict) and number.isdecimal() and len(number) < 10:
            numbers[token.get("content")] = int(number)
    return check_vocabulary(numbers, path / "tokenizer_config.json")


def _fairseq_numbers(
    content: bytes, special: Mapping[str, str], codes: Sequence[str]
) -> dict[str, int]:
    """Assign fairseq's ids to the pieces of a model, the languages and the mask."""
    processor = load_processor(content)
    size = processor.get_piece_size()
    numbers = {name: number for number, name in enumerate(special.values())}
    pieces = processor.id_to_piece(list(range(3, size)))
    numbers |= {piece: number for number, piece in enumerate(pieces, start=4)}
    return numbers | {code: size + 1 + number for number, code in enumerate([*codes, "<mask>"])}


def _numbers_of(tokenizer_json: Mapping[str, Any], path: Path) -> dict[str, int]:
    """Read the ids of the tokens in `tokenizer.json`."""
    model = tokenizer_json.get("model")
    listed = model.get("vocab") if isinstance(model, dict) else None
    numbers: dict[Any, Any] = {}
    if isinstance(listed, dict):
        numbers = dict(listed)
    elif isinstance(listed, list) and all(isinstance(entry, list) and entry for entry in listed):
        numbers = {_hashable(entry[0]): number for number, entry in enumerate(listed)}
    added = tokenizer_json.get("added_tokens")
    for token in added if isinstance(added, list) else []:
        if isinstance(token, dict):
            numbers[_hashable(token.get("content"))] = token.get("id")
    return check_vocabulary(numbers, path / WHOLE)


def _hashable(piece: Any) -> str | None:
    """Return a piece if it is text, else None, which `check_vocabulary` refuses."""
    return piece if isinstance(piece, str) else None


def _model_of(tokenizer_json: Mapping[str, Any], special: Mapping[str, str], path: Path) -> bytes:
    """Build a sentencepiece model from the pieces in `tokenizer.json`."""
    model = tokenizer_json.get("model")
    try:
        assert isinstance(model, dict)
        kind = {"Unigram": "unigram", "BPE": "bpe"}[model["type"]]
        pieces = [*_score_pieces(model)]
        charsmap = b"".join(
            base64.b64decode(part["precompiled_charsmap"], validate=True)
            for part in _normalizers(tokenizer_json.get("normalizer"))
            if part.get("type") == "Precompiled"
        )
        names = {name: special[name] for name in ("unknown", "start", "end")}
        return build_model(kind, pieces, charsmap, names)
    except (AssertionError, KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise ExchangeError(
            f"{path} must describe a sentencepiece model (Unigram or BPE), but does not "
            f"({type(error).__name__}: {str(error)[:80]}); copy {MODEL} of the original model "
            "into the folder."
        ) from error


def _score_pieces(model: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """List the pieces with scores; BPE pieces that are merged earlier have higher scores."""
    vocabulary = model["vocab"]
    if model["type"] == "Unigram":
        for number, (piece, score) in enumerate(vocabulary):
            # the special symbols come first; languages and the mask have a score of zero
            if (
                number > 3
                and (score != 0.0 or not BARE_CODE.fullmatch(piece))
                and piece != "<mask>"
            ):
                yield str(piece), float(score)
        return
    merges = [m.split(" ") if isinstance(m, str) else m for m in model["merges"]]
    ranks: dict[str, int] = {}
    for rank, (first, second) in enumerate(merges):
        ranks.setdefault(first + second, rank)
    for piece in sorted(vocabulary, key=vocabulary.__getitem__):
        yield str(piece), -float(ranks.get(piece, len(merges)))


def _normalizers(content: Any) -> list[dict[str, Any]]:
    """List the steps of a normalizer."""
    if not isinstance(content, dict):
        return []
    steps = content.get("normalizers", [content])
    return [step for step in steps if isinstance(step, dict)]
