"""
Moses' text tools in Python: punctuation made plain, words and punctuation set apart.

The field's tokenised BLEU, the paper's among it, is counted on text that these Perl scripts of
``moses-smt/mosesdecoder`` have gone over. sacremoses (extra ``paper``) holds their rules; what is
added here is only what makes it do line for line what Perl does.
"""

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from heedful.errors import MissingExtra


def replace_unicode_punctuation(line: str) -> str:
    """
    Replace full-width and typographic punctuation by ASCII.

    Parameters
    ----------
    line : str
        Any text.

    Returns
    -------
    str
        The line, for example with “ and ” as straight quotation marks and … as three full stops.

    Raises
    ------
    MissingExtra
        If sacremoses is not installed.

    Notes
    -----
    ``replace-unicode-punctuation.perl``. The lower German quotation mark „ is not in its list and
    stays. One slip of the script is not repeated: it turns a full-width 1 into a quotation mark.
    """
    return str(_normaliser("en").replace_unicode_punct(line))


def normalise_punctuation(line: str, language: str) -> str:
    """
    Make quotation marks, dashes and the space around punctuation uniform.

    Parameters
    ----------
    line : str
        Any text.
    language : str
        Its code; English, Czech and the others differ in the order of a quotation mark and a
        comma, and in the decimal separator.

    Returns
    -------
    str
        The line, with all quotation marks straight ones, among other things.

    Raises
    ------
    MissingExtra
        If sacremoses is not installed.

    Notes
    -----
    ``normalize-punctuation.perl``, as it was in December 2017 (commit 3a0631a). Perl works on a
    line with its line end, and one of its rules needs a character after the quotation mark, which
    may be just that; so the line end is put back for sacremoses, which strips it again.
    """
    return str(_normaliser(language).normalize(f"{line}\n"))


def tokenise(line: str, language: str) -> str:
    """
    Set words and punctuation apart by spaces.

    Parameters
    ----------
    line : str
        Any text.
    language : str
        Its code; abbreviations and the apostrophe go by it. An unknown one is treated like
        English abbreviations and a free-standing apostrophe.

    Returns
    -------
    str
        The tokens, joined by single spaces, with ``& | < > ' " [ ]`` escaped (``&amp;`` …).

    Raises
    ------
    MissingExtra
        If sacremoses is not installed.

    Notes
    -----
    ``tokenizer.perl -l LANGUAGE``, as it was until November 2018, hence in all the years of the
    paper and its first followers: a known abbreviation keeps its full stop at the end of a line
    too (later versions split that one always, moses-smt/mosesdecoder#204).
    """
    return str(_tokeniser(language).tokenize(line, return_str=True))


@cache
def _tokeniser(language: str) -> Any:
    """Return sacremoses' tokeniser, which has no state."""
    return _sacremoses().MosesTokenizer(lang=language)


@cache
def _normaliser(language: str) -> Any:
    """Return sacremoses' normaliser, told to treat quotation marks as Perl does."""
    return _sacremoses().MosesPunctNormalizer(lang=language, perl_parity=True)


def _sacremoses() -> ModuleType:
    """Import sacremoses, or say how to get it."""
    try:
        return import_module("sacremoses")
    except ModuleNotFoundError as error:
        raise MissingExtra(
            "The paper's tokenised BLEU needs sacremoses, which is not installed; "
            "install it with: pip install 'heedful[paper]'"
        ) from error
