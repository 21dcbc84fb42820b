"""Language codes, and sacreBLEU's tokenizer for each."""

import logging
import re
from collections.abc import Sequence
from functools import cache

from sacrebleu.metrics.bleu import BLEU

from heedful.errors import TextError

_log = logging.getLogger("heedful.evaluation")
# Every two-letter code of ISO 639, those that were withdrawn, and LibreTranslate's zt.
_TWO_LETTERS = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv "
    "cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr "
    "ht hu hy hz ia id ie ig ii ik in io is it iu iw ja ji jv jw ka kg ki kj kk kl km kn ko kr "
    "ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mo mr ms mt my na nb nd ne ng "
    "nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk "
    "sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve "
    "vi vo wa wo xh yi yo za zh zt zu"
)
# Other codes of the languages that are not tokenized by rule 13a.
_SAME = {
    "bod": "bo",
    "bur": "my",
    "dzo": "dz",
    "jpn": "ja",
    "khm": "km",
    "kor": "ko",
    "lao": "lo",
    "mya": "my",
    "tha": "th",
    "tib": "bo",
    "chi": "zh",
    "cmn": "zh",
    "lzh": "zh",
    "yue": "zh",
    "zho": "zh",
    "zt": "zh",
}
_TOKENIZERS = {"ja": "ja-mecab", "ko": "ko-mecab", "zh": "zh"}
# Written without spaces between words, and sacreBLEU cuts none of them: by rule 13a a sentence
# would be one word, and BLEU of all but equal ones 0.
_TOKENIZERS |= dict.fromkeys(("bo", "dz", "km", "lo", "my", "th"), "char")
_NAMES = {"ja": "Japanese", "ko": "Korean"}
_LETTER = re.compile(r"[^\W\d_]")
_LETTERS_OF = {
    "ja": re.compile("[\u3040-\u30ff]"),  # Hiragana and Katakana, between Chinese characters
    "ko": re.compile("[\uac00-\ud7a3]"),
    "zh": re.compile("[\u3400-\u4dbf\u4e00-\u9fff]"),
    "th": re.compile("[\u0e00-\u0e7f]"),
    "lo": re.compile("[\u0e80-\u0eff]"),
    "bo": re.compile("[\u0f00-\u0fff]"),
    "my": re.compile("[\u1000-\u109f]"),
    "km": re.compile("[\u1780-\u17ff]"),
}


def language_code(language: str) -> str:
    """Normalise a language code: ``zh-TW`` and ``zho_Hans`` to “zh”, ``de-AT`` to “de”."""
    code = language.replace("_", "-").split("-")[0].lower()
    return _SAME.get(code, code)


def is_language(language: str) -> bool:
    """Whether this is a two-letter code of ISO 639, or one of a language with its own tokenizer."""
    code = language.replace("_", "-").split("-")[0].lower()
    return code in _TWO_LETTERS.split() or code in _SAME


def check_language(language: str) -> None:
    """Refuse an invalid language code; an empty one is allowed."""
    code = language.replace("_", "-").split("-")[0]
    # ISO 639-3 has 7,900 codes of three letters: those are taken on trust
    if language and not is_language(language) and not (len(code) == 3 and code.isalpha()):
        raise TextError(
            "The language must be a code of ISO 639, such as de, ja or zh-TW, but "
            f"“{language}” came; there is no such code."
        )


@cache  # so that the warning comes once
def bleu_tokenizer(language: str) -> str:
    """Return sacreBLEU's tokenizer for a language; characters, with a warning, if it is missing."""
    code = language_code(language)
    name = _TOKENIZERS.get(code, BLEU.TOKENIZER_DEFAULT)
    try:
        BLEU(tokenize=name)
    except RuntimeError:
        _log.warning(
            "BLEU of %s is computed on characters (tok:char) and compares only with others made "
            "so, because sacreBLEU's tokenizer %s is not installed; pip install 'heedful[%s]' "
            "brings it.",
            _NAMES[code],
            name,
            code,
        )
        return "char"
    return name


def written_language(lines: Sequence[str]) -> str:
    """Detect languages that rule 13a does not suit by their script; “” for any other one."""
    text = "".join(lines[:200])
    letters = max(len(_LETTER.findall(text)), 1)
    shares = {code: len(of.findall(text)) / letters for code, of in _LETTERS_OF.items()}
    if shares["ja"] > 0.1 and shares["ja"] + shares["zh"] > 0.5:
        return "ja"
    return next((code for code, share in shares.items() if code != "ja" and share > 0.5), "")
