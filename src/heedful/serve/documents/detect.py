"""
Language detection with calibrated confidence.

At least 90 % of guesses at 90 are right. Text in an unsupported language gets low confidences.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from py3langid.langid import MODEL_FILE, LanguageIdentifier

# Prior odds that a text is in a language of the server and not in another. Chosen together with the
# temperature on sentences, pairs of words and single words of Tatoeba.
_PRIOR = 300.0
# The identifier takes letters for independent, so its odds are too extreme. They are flattened.
_TEMPERATURE = 0.5
# More characters than these cost time and do not change the result.
_MAX_CHARACTERS = 4000
# Language codes for which the identifier uses another code.
_ALIASES = {"nb": "no", "nn": "no", "iw": "he", "in": "id", "fil": "tl"}


class Guess(NamedTuple):
    """A language with its confidence, as in LibreTranslate's answers."""

    language: str
    """Its code, such as ``en``."""
    confidence: float
    """Percent, calibrated: about 90 % of guesses at 90 are right."""


def detect(text: str, languages: Sequence[str]) -> list[Guess]:
    """Detect the language of a text."""
    # The confidence is 0 for text without letters and for languages that the identifier does not
    # know. A single word is seldom enough for a high one.
    text = text[:_MAX_CHARACTERS]
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


def _code(language: str, odds: dict[str, float]) -> str:
    """Map the identifier's code to a model's: pt-BR to pt."""
    first = language.replace("_", "-").split("-")[0].lower()
    alias = _ALIASES.get(first, first)
    return first if first in odds or alias not in odds else alias
