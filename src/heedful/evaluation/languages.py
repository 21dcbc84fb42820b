"""Language codes, and sacreBLEU's tokenizer for each."""

import logging
import re
from collections.abc import Sequence
from functools import cache

from sacrebleu.metrics.bleu import BLEU

from heedful.errors import TextError
from heedful.text.language_codes import TWO_LETTERS, language_of_code

_log = logging.getLogger("heedful.evaluation")
# Languages whose text is tokenized like that of another language.
_SAME = dict.fromkeys(("gan", "hak", "hsn", "lzh", "nan", "wuu", "yue"), "zh")
_TOKENIZERS = {"ja": "ja-mecab", "ko": "ko-mecab", "zh": "zh"}
# These languages are written without spaces, and sacreBLEU has no tokenizer for them. By rule 13a a
# sentence would be one word, with BLEU 0 unless it equals its reference.
_TOKENIZERS |= dict.fromkeys(("bo", "dz", "km", "lo", "my", "th"), "char")
_NAMES = {"ja": "Japanese", "ko": "Korean"}
_LETTER = re.compile(r"[^\W\d_]")
_LETTERS_OF = {
    "ja": re.compile("[\u3040-\u30ff]"),  # Hiragana and Katakana, mixed with Chinese characters
    "ko": re.compile("[\uac00-\ud7a3]"),
    "zh": re.compile("[\u3400-\u4dbf\u4e00-\u9fff]"),
    "th": re.compile("[\u0e00-\u0e7f]"),
    "lo": re.compile("[\u0e80-\u0eff]"),
    "bo": re.compile("[\u0f00-\u0fff]"),
    "my": re.compile("[\u1000-\u109f]"),
    "km": re.compile("[\u1780-\u17ff]"),
}


def language_code(language: str) -> str:
    """Normalize a language code: ``zh-TW`` and ``zho_Hans`` to “zh”, ``deu-AT`` to “de”."""
    code = language_of_code(language)
    return _SAME.get(code, code)


def is_language(language: str) -> bool:
    """Return whether a language has a two-letter code, or is tokenized like a language with one."""
    return language_code(language) in TWO_LETTERS


def check_language(language: str) -> None:
    """Refuse an invalid language code; an empty one is allowed."""
    code = language_of_code(language)
    # ISO 639-3 has 7,900 codes of three letters, which are not looked up
    if language and not is_language(language) and not (len(code) == 3 and code.isalpha()):
        raise TextError(
            "The language must be an ISO 639 code, optionally with a region, such as de, ja or "
            f"zh-TW, but got “{language}”; there is no such code."
        )


@cache  # so that the warning is written once
def bleu_tokenizer(language: str) -> str:
    """Return sacreBLEU's tokenizer for a language, or “char” with a warning if it is missing."""
    code = language_code(language)
    name = _TOKENIZERS.get(code, BLEU.TOKENIZER_DEFAULT)
    try:
        BLEU(tokenize=name)
    except RuntimeError:
        _log.warning(
            "BLEU for %s is computed on characters (tok:char), because sacreBLEU's tokenizer %s "
            "is not installed; compare it only with scores that are also computed on characters, "
            "or install the tokenizer: pip install 'heedful[%s]'",
            _NAMES[code],
            name,
            code,
        )
        return "char"
    return name


def written_language(lines: Sequence[str]) -> str:
    """Detect, by script, a language that tokenizer 13a does not suit; “” for other languages."""
    text = "".join(lines[:200])
    letters = max(len(_LETTER.findall(text)), 1)
    shares = {code: len(of.findall(text)) / letters for code, of in _LETTERS_OF.items()}
    if shares["ja"] > 0.1 and shares["ja"] + shares["zh"] > 0.5:
        return "ja"
    return next((code for code, share in shares.items() if code != "ja" and share > 0.5), "")
