"""
Language detection with calibrated confidence.

About 90% of the guesses with a confidence of 90% are right. Text in an unsupported language gets
low confidences.

The identifier compares sequences of letters, and a short text has too few of them. Therefore, a
language that is not written in the script of the text gets confidence 0. One or two short words get
at most 80%.
"""

import math
import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from heedful.data.cleaning.scripts import count_scripts, scripts_of
from heedful.text.language_codes import language_of_code

# Prior odds that a text is in a language of the server and not in another. They were chosen with
# the temperature on sentences, pairs of words and single words of Tatoeba.
_PRIOR = 300.0
# The identifier treats letters as independent, so its odds are too extreme; this divisor makes them
# less extreme.
_TEMPERATURE = 0.5
# Further characters would cost time and hardly change the result.
_MAX_CHARACTERS = 4000
# Arrows, signs and emoji, whose bytes the identifier would treat as letters.
_SYMBOLS = re.compile("[\u2190-\u2bff\U0001f000-\U0001faff][\u200d\ufe0f]*")
# Language codes for which the identifier uses another code.
_ALIASES = {"nb": "no", "nn": "no"}
# Maximum numbers of words and letters of a short text, and the maximum confidence in its language.
# A letter of a script without spaces counts as three letters.
_SHORT_WORDS, _SHORT_LETTERS, _MOST_OF_SHORT = 2, 20, 80.0
_KANA = ("HIRAGANA", "KATAKANA", "HENTAIGANA")
_DENSE = (*_KANA, "CJK", "HANGUL", "BOPOMOFO", "THAI", "LAO", "KHMER", "MYANMAR")
# A text with a larger share of kana is not Chinese; Chinese text may quote some kana.
_LEAST_KANA = 0.1


class Guess(NamedTuple):
    """A language with its confidence, as in LibreTranslate's answers."""

    language: str
    """Its code, such as ``en``."""
    confidence: float
    """Calibrated confidence in percent: about 90% of the guesses at 90 are right."""


def detect(text: str, languages: Sequence[str]) -> list[Guess]:
    """Detect the language of a text."""
    # The confidence is 0 for text without letters and for languages that the identifier does not
    # know.
    text = _SYMBOLS.sub(" ", text[:_MAX_CHARACTERS]).strip()
    possible = [language for language in languages if is_possible(text, language)]
    if not possible:
        return [Guess(language, 0.0) for language in languages]
    scores = dict(_identifier().rank(text))
    temperature = _TEMPERATURE * math.sqrt(len(text.encode(errors="replace")))
    most = max(scores.values())
    odds = {code: math.exp((score - most) / temperature) for code, score in scores.items()}
    served = {language: _PRIOR * odds.get(_code(language, odds), 0.0) for language in possible}
    known = {_code(language, odds) for language in possible}
    total = sum(served.values()) + sum(odds[code] for code in odds if code not in known)
    limit = _MOST_OF_SHORT if is_short(text) else 100.0
    guesses = (
        Guess(language, min(limit, round(100 * served.get(language, 0.0) / total, 1)))
        for language in languages
    )
    return sorted(guesses, key=lambda guess: -guess.confidence)


def is_short(text: str) -> bool:
    """Return whether a text has only one or two short words, too few to be certain."""
    counts = count_scripts(text)
    letters = counts.total() + 2 * sum(counts[script] for script in _DENSE)
    return len(text.split()) <= _SHORT_WORDS and letters <= _SHORT_LETTERS


def is_possible(text: str, language: str) -> bool:
    """Return whether the scripts of a text's letters allow a language."""
    counts = count_scripts(text)
    scripts = scripts_of(language)
    if not counts or scripts is None:
        return bool(counts)
    kana = sum(counts[script] for script in _KANA)
    if kana > _LEAST_KANA * counts.total() and "CJK" in scripts and "HIRAGANA" not in scripts:
        return False
    own = sum(counts[script] for script in scripts)
    # Names and addresses in Latin letters occur in text of every script.
    latin = 0 if "LATIN" in scripts else counts["LATIN"]
    return own > 0 and own >= counts.total() - latin - own


@cache
def _identifier() -> LanguageIdentifier:
    """Load the identifier on first use, because it takes half a second and 90 MB."""
    return LanguageIdentifier.from_model_file(MODEL_FILE)


def _code(language: str, odds: dict[str, float]) -> str:
    """Map a model's language code to the identifier's code, such as pt-BR to pt."""
    code = language_of_code(language)
    alias = _ALIASES.get(code, code)
    return code if code in odds or alias not in odds else alias
