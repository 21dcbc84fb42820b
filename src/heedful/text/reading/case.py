"""
Words in capitals that a model knows only in lower case, and the case of their translations.

::

    THE BIG RED DOG     →  the big red dog    →  le gros chien rouge  →  LE GROS CHIEN ROUGE
    The Big Red Dog     →  the big red dog    →  …                    →  Le Gros Chien Rouge
    the BIG red dog     →  the big red dog    →  …                    →  le GROS chien rouge

The model reads the form of a word that has the fewest subwords. So a name with a subword of its own
keeps its capital.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from heedful.text.reading.letter_case import (
    UNKNOWN,
    Languages,
    in_case_of,
    is_upper_case,
    lower_case,
    lower_forms,
    upper_case,
    with_capital,
)
from heedful.text.reading.vocabulary import LACKING, SourceVocabulary

LineCase = Literal["", "upper", "title", "sentence"]
"""
Case of the whole translation: unchanged, all capitals, or a capital for each or the first word.
"""

_LETTERS = re.compile(r"[^\W\d_]+")
# A short word in capitals may be an abbreviation; a word of this many letters rarely is.
_LONG_WORD = 4


class CasedWords(NamedTuple):
    """The words that a model reads, and their original case."""

    words: list[str]
    changed: list[bool]
    """Whether the case of each word was changed."""
    line: LineCase = ""


def read_case(words: Sequence[str], vocabulary: SourceVocabulary) -> CasedWords:
    """Choose the case in which a model knows each word best."""
    if not any(map(_has_capital, words)) or not any(map(_LETTERS.search, words)):
        return CasedWords(list(words), [False] * len(words))
    line = _case_of(words, vocabulary.capitalizes_nouns)
    # not empty: a line whose only capital is “Ⓐ”, which is no letter, has been returned
    lettered = [place for place, word in enumerate(words) if _LETTERS.search(word)]
    first, is_alone = lettered[0], len(lettered) == 1
    read = [
        _known_form(word, line, place == first, is_alone, vocabulary)
        for place, word in enumerate(words)
    ]
    changed = [form != word for form, word in zip(read, words, strict=True)]
    if not any(changed):
        return CasedWords(read, changed)
    if not line and changed[first] and _is_capitalized(words[first]):
        line = "sentence"
    return CasedWords(read, changed, line)


def restore_word(source: str, target: str, languages: Languages = UNKNOWN) -> str:
    """Give a translated word the case of its source word."""
    if target == lower_case(source, languages.source):
        return source
    return in_case_of(source, target, languages.target)


def restore_line(words: Sequence[str], line: LineCase, language: str = "") -> list[str]:
    """Give the words of a translation the case of the source. `language`: the target language."""
    if line == "upper":
        return [upper_case(word, language) for word in words]
    if line == "title":
        return [with_capital(word, language) for word in words]
    restored = list(words)
    if line == "sentence":
        first = next((n for n, word in enumerate(words) if _LETTERS.search(word)), None)
        if first is not None:
            restored[first] = with_capital(words[first], language)
    return restored


def has_plain_case(word: str) -> bool:
    """Whether each part of a word is in capitals, in lower case or capitalized, unlike “iPhone”."""
    parts = _LETTERS.findall(word)
    return all(is_upper_case(part) or part[1:] == part[1:].lower() for part in parts)


def _case_of(words: Sequence[str], capitalizes_nouns: bool) -> LineCase:
    """
    Decide in which case a line as a whole is written.

    `capitalizes_nouns`: whether the language capitalizes nouns; if so, a line with any word in
    lower case is not a heading.
    """
    cased = [word for word in words if word.lower() != word.upper()]
    if all(map(is_upper_case, cased)) and max(map(_count_letters, cased)) > 1:
        return "upper"
    capital = [word for word in cased if _has_capital(word)]
    # Short words, such as articles, may stay in lower case in a heading.
    small = [word for word in cased if not _has_capital(word)]
    longest_small = 0 if capitalizes_nouns else _LONG_WORD - 1
    is_heading = all(_count_letters(word) <= longest_small for word in small)
    if is_heading and len(capital) > max(1, len(small)) and _is_capitalized(cased[0]):
        return "title"
    return ""


def _known_form(
    word: str, line: LineCase, is_first: bool, is_alone: bool, vocabulary: SourceVocabulary
) -> str:
    """Choose the form of a word that a model knows best."""
    if not _has_capital(word):
        return word
    lower = min(lower_forms(word, vocabulary.language), key=vocabulary.cost)
    letters, cost = _count_letters(word), vocabulary.cost(word)
    if cost >= LACKING:
        return lower if vocabulary.cost(lower) < LACKING else word
    if line == "upper" and letters > 1:
        # The first word begins a sentence; other words are names if a capital saves subwords.
        forms = [with_capital(lower, vocabulary.language), lower]
        best = min(forms if is_first else forms[::-1], key=vocabulary.cost)
        is_word = vocabulary.cost(best) == 1 or letters >= _LONG_WORD or not is_alone
        # At equal cost the new form is used, because the words around it are changed, too.
        return best if is_word and vocabulary.cost(best) <= cost else word
    # In a line in capitals only one-letter words get here; English “I” keeps its capital.
    in_heading = line == "title" or (line == "upper" and word != "I")
    if in_heading and not is_first and _is_capitalized(word):
        # “Sie” and “sie” mean different things in German, so the change must save a subword.
        limit = cost - 1 if line == "title" and vocabulary.capitalizes_nouns else cost
        return lower if vocabulary.cost(lower) <= limit else word
    if is_upper_case(word) and letters >= _LONG_WORD and vocabulary.cost(lower) == 1 < cost:
        return lower
    return word


def _has_capital(word: str) -> bool:
    """Whether a word has a capital letter."""
    return word != word.lower() and any(map(str.isupper, word))


def _is_capitalized(word: str) -> bool:
    """Whether the first letter alone is a capital."""
    letters = "".join(_LETTERS.findall(word))
    return letters[:1].isupper() and letters[1:] == letters[1:].lower()


def _count_letters(word: str) -> int:
    """Count the letters of a word."""
    return sum(map(str.isalpha, word))
