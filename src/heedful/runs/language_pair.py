"""
The direction of a run: the language that it reads and the language that it writes.

The names of languages are usually the extensions of the training files. So they are not always
language codes, and one language may have several names: ``en``, ``en-US`` and ``eng``. Two names
count as different languages only if the difference is certain.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from heedful.text.language_codes import ENDINGS, parse_code


class LanguagePair(NamedTuple):
    """Source and target language, as the settings name them."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source or '?'} to {self.target or '?'}"

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "LanguagePair":
        """Read the direction from flat settings; unknown languages are empty."""
        names = ("data.source_language", "data.target_language")
        return cls(*(str(settings.get(name) or "") for name in names))

    def contradicts(self, second: "LanguagePair") -> bool:
        """Return whether two directions certainly differ: reversed, or with different languages."""
        is_reversed = self.source != self.target and self == (second.target, second.source)
        return is_reversed or any(map(_differ, self, second))


def _differ(first: str, second: str) -> bool:
    """Return whether two codes, without region and script, certainly name different languages."""
    codes = [_code(first), _code(second)]
    return all(codes) and len(codes[0]) == len(codes[1]) and codes[0] != codes[1]


def _code(language: str) -> str:
    """Return the language of a code such as ``pt-BR`` or ``zho_Hans``; empty for invalid codes."""
    tag = parse_code(language)
    return tag.language if tag and tag.language not in ENDINGS else ""
