"""
Special tokens around each text, such as the token of its language.

::

    source "before"    de_DE Guten Tag </s>       M2M100, NLLB, mBART-50; BART uses <s>
    source "behind"    Guten Tag </s> de_DE       mBART
    target "first"     </s> en_XX Good morning    the first token is fixed, not searched
    target "start"     en_XX Good morning         decoding starts with it

A model with many languages has a token for each language; BART has only the start symbol. The
tokens are part of the ids in training, search, scores and attention; no text can produce them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from heedful.errors import SettingError, TokenizerError
from heedful.text.language_codes import in_another_script, language_of_code, look_up
from heedful.tokenization.special_symbols import END, SPECIAL_PIECES, START

SOURCES, TARGETS = ("before", "behind"), ("first", "start")
_NEAR = 5


@dataclass(frozen=True)
class Frame:
    """The tokens around each text of a source and a target."""

    source: str = "before"
    """Where a source's token is: “before” the source, or “behind” the source and its end symbol."""
    target: str = "first"
    """Role of a target's token: the “first” token of the target, or the “start” of decoding."""
    languages: Mapping[str, int] = field(default_factory=dict)
    """The token of each language by its code; empty if all texts have the start symbol."""

    def token(self, language: str) -> int:
        """Return the token of a language, whose code is one of `languages`."""
        return self.languages[language] if self.languages else START

    def around_source(self, language: str) -> tuple[list[int], list[int]]:
        """List the tokens before and after a source text, except an end symbol that batches add."""
        token = self.token(language)
        return ([token], []) if self.source == "before" else ([], [END, token])

    def before_target(self, language: str) -> list[int]:
        """List the tokens with which each target begins."""
        return [self.token(language)] if self.target == "first" else []

    def code(self, language: str, option: str) -> str:
        """
        Find the model's own code for a language.

        `language`: a code in any form, such as ``de`` for ``deu_Latn``. `option`: name of the
        option, for messages. Raises `SettingError` if there is none; the message lists the most
        similar languages.
        """
        known = [*self.languages]
        if not known:
            return language
        code = look_up(language, known)
        if code is not None:
            return code
        script = in_another_script(language, known)
        first = language_of_code(language)
        near = dict.fromkeys(
            [
                *([script] if script else []),
                *(name for name in known if language_of_code(name) == first),
                *get_close_matches(language, known, _NEAR, 0.5),
            ]
        )
        shown = [*near][:_NEAR] or known[:_NEAR]
        what = "similar ones are" if near else f"some of its {len(known):,} languages are"
        raise SettingError(
            f"{option} must be a language of this model, but is {language!r:.40}; {what} "
            f"{', '.join(shown)}."
        )

    def to_record(self) -> dict[str, Any]:
        """Convert to JSON for ``tokenizer.json``."""
        return {
            "source": self.source,
            "target": self.target,
            "languages": [[code, number] for code, number in self.languages.items()],
        }

    @classmethod
    def from_record(cls, record: object, size: int) -> "Frame":
        """
        Read a frame from JSON, which may be untrusted. `size`: number of ids in the vocabulary.

        Raises `TokenizerError` if the JSON is invalid.
        """
        if isinstance(record, dict) and isinstance(record.get("languages"), list):
            pairs = record["languages"]
            fits = (
                record.get("source") in SOURCES
                and record.get("target") in TARGETS
                and all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
                and all(isinstance(code, str) and type(n) is int for code, n in pairs)
                and all(len(SPECIAL_PIECES) <= number < size for _, number in pairs)
                and len({code for code, _ in pairs}) == len(pairs)
            )
            if fits:
                return cls(record["source"], record["target"], dict(pairs))
        raise TokenizerError(
            "`frame` in tokenizer.json must give the positions of the language tokens and a known "
            "id for each, but does not; copy the run folder again."
        )
