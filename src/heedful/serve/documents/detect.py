"""
Language detection with calibrated confidence.

Of a hundred guesses with a confidence of 90, ninety and more are right. Text in an unsupported
language shows by low confidences.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from py3langid.langid import MODEL_FILE, LanguageIdentifier

# What is sent to a translator is that much likelier in a language that it knows than in another.
# Chosen with the exponent below on sentences, pairs of words and single words of Tatoeba.
_PRIOR = 300.0
# Letters depend on each other, which the identifier's odds do not know.
_TEMPERATURE = 0.5
# More than this many characters add nothing but time.
_MOST_CHARACTERS = 4000
# Codes of one language that the identifier knows by another.
_ALIASES = {"nb": "no", "nn": "no", "iw": "he", "in": "id", "fil": "tl"}


class Guess(NamedTuple):
    """
    A language with its confidence.

    The form of LibreTranslate's answers.
    """

    language: str
    """Its code, such as ``en``."""
    confidence: float
    """Percent, calibrated: about 90 % of guesses at 90 are right."""


def detect(text: str, languages: Sequence[str]) -> list[Guess]:
    """
    Detect the language of a text.

    The confidence is 0 for text without letters and for languages that the identifier does not
    know. A single word is seldom enough.
    """
    text = text[:_MOST_CHARACTERS]
    if not any(map(str.isalpha, text)):
        return [Guess(language, 0.0) for language in languages]
    scores = dict(_identifier().rank(text))
    temperature = _TEMPERATURE * math.sqrt(len(text.encode(errors="replace")))
    most = max(scores.values())
    odds = {code: math.exp((score - most) / temperature) for code, score in scores.items()}
    asked = {language: _PRIOR * odds.get(_code(language, odds), 0.0) for language in languages}
    known = {_code(language, odds) for language in languages}
    total = sum(asked.values()) + sum(odds[code] for code in odds if code not in known)
    guesses = (Guess(language, round(100 * odd / total, 1)) for language, odd in asked.items())
    return sorted(guesses, key=lambda guess: -guess.confidence)


@cache
def _identifier() -> LanguageIdentifier:
    """Load the identifier on first use: half a second, 90 MB."""
    return LanguageIdentifier.from_model_file(MODEL_FILE)


def _code(language: str, known: dict[str, float]) -> str:
    """Map the identifier's code to a model's: pt-BR to pt."""
    first = language.replace("_", "-").split("-")[0].lower()
    alias = _ALIASES.get(first, first)
    return first if first in known or alias not in known else alias
