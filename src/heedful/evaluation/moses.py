"""
Moses' punctuation normalizer and tokenizer in Python.

Published tokenized BLEU, such as the paper's, is computed on text that these Perl scripts of
``moses-smt/mosesdecoder`` have processed. sacremoses (extra ``paper``) has their rules. This module
calls sacremoses so that its output equals the scripts' output, line by line.
"""

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from heedful.errors import MissingExtra


def replace_unicode_punctuation(line: str) -> str:
    """
    Replace full-width and typographic punctuation with ASCII.

    The output equals that of ``replace-unicode-punctuation.perl``, which does not replace the
    German low quotation mark „. One bug of the script is not repeated: the script turns a
    full-width 1 into a quotation mark.

    Raises `MissingExtra` if sacremoses is not installed.
    """
    return str(_normalizer().replace_unicode_punct(line))


def tokenize(line: str, language: str) -> str:
    """
    Separate words and punctuation with spaces.

    The output equals that of ``tokenizer.perl -l LANGUAGE`` before November 2018, as used for the
    paper. A known abbreviation keeps its period even at the end of a line; later versions always
    split it off (moses-smt/mosesdecoder#204).

    Raises `MissingExtra` if sacremoses is not installed.
    """
    return str(_tokenizer(language).tokenize(line, return_str=True))


@cache
def _tokenizer(language: str) -> Any:
    """Return sacremoses' tokenizer, which has no state."""
    return _sacremoses().MosesTokenizer(lang=language)


@cache
def _normalizer() -> Any:
    """Return sacremoses' normalizer, whose replacements are the same for all languages."""
    return _sacremoses().MosesPunctNormalizer(perl_parity=True)


def _sacremoses() -> ModuleType:
    """Import sacremoses, or raise an error with the install command."""
    try:
        return import_module("sacremoses")
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "The paper's tokenized BLEU needs sacremoses, which is not installed; "
            "install it with: pip install 'heedful[paper]'"
        ) from error
