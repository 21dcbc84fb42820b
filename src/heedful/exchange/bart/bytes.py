"""
The tokenizer of a BART folder: byte-level BPE, and a start symbol before each text.

The import reads ``tokenizer_config.json``, and either ``vocab.json`` and ``merges.txt`` or
``tokenizer.json``, which contains both.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from heedful.errors import ExchangeError
from heedful.exchange.formats import read_settings_file
from heedful.exchange.huggingface.settings import check_added, spelling
from heedful.files import read_within

VOCABULARY, MERGES, WHOLE = "vocab.json", "merges.txt", "tokenizer.json"
CLASSES = ("BartTokenizer", "RobertaTokenizer", "GPT2Tokenizer", "TokenizersBackend")
"""Byte-level BPE tokenizer classes of the transformers library; exports name the first."""
_MASK = "<mask>"
_SAME = {"cls_token": "bos_token", "sep_token": "eos_token"}
_USUAL = {"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>"}


def read_bytes(
    path: Path,
    spelled: Mapping[str, Any],
    special: Mapping[str, str],
    tokenizer_json: Mapping[str, Any],
) -> tuple[dict[str, Any], bytes]:
    """
    Read the vocabulary and the merges.

    `spelled`: content of ``tokenizer_config.json``. `special`: spellings of the special symbols.
    `tokenizer_json`: content of ``tokenizer.json``, which is preferred to the other files, as in
    transformers; empty if the file is missing. Raises `ExchangeError` if files are missing, or if
    the tokenizer is of another kind.
    """
    _check_class(path, spelled)
    numbers: dict[str, Any]
    if tokenizer_json:
        model = tokenizer_json.get("model")
        if not isinstance(model, dict) or not isinstance(model.get("vocab"), dict):
            raise ExchangeError(
                f"{path / WHOLE} must describe BART's byte-level BPE, but describes another "
                "tokenizer; models of this class with other tokenizers cannot be imported."
            )
        numbers = dict(model["vocab"])
        content = _merges_file(model.get("merges"), path / WHOLE)
    else:
        missing = [name for name in (VOCABULARY, MERGES) if not (path / name).is_file()]
        if missing:
            raise ExchangeError(
                f"a BART folder must contain {VOCABULARY} and {MERGES}, or {WHOLE}, but {path} "
                f"lacks {' and '.join(missing)}; copy the whole folder again."
            )
        numbers = read_settings_file(path / VOCABULARY)
        content = read_within(path / MERGES)
    usual = {*special.values(), _MASK}
    check_added(path, spelled, tokenizer_json, "byte-level BPE", usual.__contains__)
    return numbers, content


def is_spaced(spelled: Mapping[str, Any]) -> bool:
    """Return whether the tokenizer inserts a space before the first word of a text."""
    return bool(spelled.get("add_prefix_space", False))


def _check_class(path: Path, spelled: Mapping[str, Any]) -> None:
    """Refuse tokenizers that split text or add special symbols differently from BART's."""
    name = str(spelled.get("tokenizer_class") or CLASSES[0]).removesuffix("Fast")
    names = {token: spelling(spelled, token, usual) for token, usual in _USUAL.items()}
    different = [token for token, same in _SAME.items() if names[token] != names[same]]
    if name not in CLASSES or different:
        reason = f"{different[0]} differs from {_SAME[different[0]]}" if different else f"is {name}"
        raise ExchangeError(
            f"the tokenizer of {path} must be BART's byte-level BPE with start and end symbols, "
            f"but {reason}; import a model with such a tokenizer."
        )


def _merges_file(merges: object, path: Path) -> bytes:
    """Convert the merges of ``tokenizer.json`` to the format of ``merges.txt``."""
    if not isinstance(merges, list):
        raise ExchangeError(f"{path} must list merges, but does not; copy the whole folder again.")
    return "".join(f"{line}\n" for line in ("#version: 0.2", *_lines(merges, path))).encode()


def _lines(merges: list[Any], path: Path) -> Iterator[str]:
    """Write each merge as a line; a merge is a list of two subwords, or text with one space."""
    for merge in merges:
        line = " ".join(map(str, merge)) if isinstance(merge, list) else str(merge)
        if len(line.split(" ")) != 2 or len(line.splitlines()) != 1:
            raise ExchangeError(
                f"{path} must list merges of two subwords, but one is {line[:60]!r}; copy the "
                "whole folder again."
            )
        yield line
