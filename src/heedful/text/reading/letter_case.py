"""
Capitals and lower case by the rules of a language.

Turkish and Azeri have an i with a dot and one without: İ is the capital of i, and I is the capital
of ı. In German capitals, “ß” becomes “SS”. All other languages follow Unicode alone.
"""

from typing import NamedTuple

from heedful.text.language_codes import language_of_code

_DOTTED = {"tr", "az"}


class Languages(NamedTuple):
    """Codes of the languages of a line; empty if unknown."""

    source: str = ""
    target: str = ""


UNKNOWN = Languages()
"""Unknown languages, to which Unicode's own rules apply."""


def lower_case(text: str, language: str = "") -> str:
    """
    Write a text in lower case.

    >>> lower_case("ISI İLE", "tr"), lower_case("ISI", "en")
    ('ısı ile', 'isi')
    """
    if language_of_code(language) in _DOTTED:
        text = text.replace("I\u0307", "i").replace("İ", "i").replace("I", "ı")
    return text.lower()


def upper_case(text: str, language: str = "") -> str:
    """
    Write a text in capitals.

    >>> upper_case("ılık su iç", "az"), upper_case("straße")
    ('ILIK SU İÇ', 'STRASSE')
    """
    if language_of_code(language) in _DOTTED:
        text = text.replace("i", "İ")
    return text.upper()


def with_capital(text: str, language: str = "") -> str:
    """Write the first letter of a text as a capital; `str.title` handles digraphs such as ǆ."""
    for place, character in enumerate(text):
        if character.isalpha():
            is_dotted = character == "i" and language_of_code(language) in _DOTTED
            capital = "İ" if is_dotted else character.title()
            return f"{text[:place]}{capital}{text[place + 1 :]}"
    return text


def is_upper_case(text: str) -> bool:
    """Whether all letters are capitals; “STRAßE” counts, too."""
    return text.replace("ß", "").isupper()


def in_case_of(source: str, target: str, language: str = "") -> str:
    """
    Write a translation in the case of its source: capitals, a first capital, or unchanged.

    >>> in_case_of("DOG", "chien"), in_case_of("Dog", "chien"), in_case_of("dog", "chien")
    ('CHIEN', 'Chien', 'chien')
    """
    letters = [letter for letter in source if letter.isalpha()]
    if len(letters) > 1 and is_upper_case(source):
        return upper_case(target, language)
    if letters and letters[0].isupper():
        return with_capital(target, language)
    return target


def lower_forms(word: str, language: str = "") -> list[str]:
    """
    List the lower-case words that a word in capitals may stand for, the one without “ß” first.

    >>> lower_forms("STRASSE", "de")
    ['strasse', 'straße']
    """
    lower = lower_case(word, language)
    parts = lower.split("ss")
    if language_of_code(language) != "de" or not is_upper_case(word) or len(parts) > 3:
        return [lower]
    forms = [parts[0]]
    for part in parts[1:]:
        forms = [f"{form}{sign}{part}" for form in forms for sign in ("ss", "ß")]
    return forms
