"""Lookups of characters and words in a model's vocabulary."""

import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache

from heedful.text.language_codes import language_of_code

Cost = Callable[[Sequence[str]], list[int]]
"""Returns the number of subwords of each text; an unknown subword counts as `LACKING`."""
LACKING = 1000
"""Cost of an unknown subword, or of a byte that spells a part of a character."""


class SourceVocabulary:
    """
    A model's vocabulary: the characters that it knows, and the number of subwords of a word.

    `cost`: counts the subwords of each text, as described at `Cost`. `alphabet`: the characters of
    the subwords, if a character that is known inside a word may be unknown as a word; else empty.
    `language`: the language's code, if known. Results are cached, because lines share the same few
    characters.
    """

    def __init__(
        self, cost: Cost, alphabet: frozenset[str] = frozenset(), language: str = ""
    ) -> None:
        self._cost, self._alphabet, self.language = cost, alphabet, language
        code = language_of_code(language)
        self.capitalizes_nouns = not code or code in _NOUNS_WITH_CAPITALS
        self.lacks = lru_cache(maxsize=1 << 16)(self._lacks)
        self.cost = lru_cache(maxsize=1 << 14)(self._cost_of)

    def _lacks(self, character: str) -> bool:
        """Whether no subword of the vocabulary can spell a character."""
        if self._alphabet:
            return character not in self._alphabet
        return self.cost(character) >= LACKING

    def _cost_of(self, word: str) -> int:
        """Count the subwords of a word."""
        return self._cost([word])[0]

    def lacks_any(self, text: str) -> bool:
        """Whether a text has a character that the vocabulary lacks."""
        return any(self.lacks(character) for character in text if not character.isspace())

    def known_form(self, character: str) -> str:
        """
        Return a plainer form of a character if the vocabulary has the form but not the character.

        For example, a curly apostrophe, a full-width letter or a ligature is then read in its plain
        form.
        """
        if not self.lacks(character):
            return character
        for plain in (_PLAINER.get(character, ""), _compatible(character)):
            if plain and plain != character and not self.lacks_any(plain):
                return plain
        return character


# German, Luxembourgish, and languages that are written like them.
_NOUNS_WITH_CAPITALS = {"de", "deu", "ger", "lb", "ltz", "gsw", "nds", "bar", "ksh", "pfl"}
_PLAINER = {
    **dict.fromkeys("’‘ʼ´`′‛", "'"),
    **dict.fromkeys("“”„‟″«»", '"'),
    **dict.fromkeys("‐‑‒–—―−", "-"),
    "…": "...",
}


def _compatible(character: str) -> str:
    """Return the NFKC form of a letter or a full-width mark; empty for other characters."""
    is_plain = character.isalpha() or "\uff01" <= character <= "\uff5e"
    return unicodedata.normalize("NFKC", character) if is_plain else ""
