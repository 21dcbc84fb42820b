"""
Terms that the user has decided: a glossary, and what is protected.

A term is met as a whole word, never as a part of one, so inflected forms are left alone. Where two
terms overlap, the longest wins. A term of the glossary without capitals is met in any case, and its
translation then has that case; other terms, and what is protected, are met exactly.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from heedful.errors import TextError
from heedful.text.lines import plain_lines, without_controls

# Scripts written without spaces: there a term may stand beside any character.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f"
)
_INSIDE_WORD = re.compile(rf"[^\W{UNSPACED}]")
_WORD_START = re.compile(rf"[{UNSPACED}]|(?<!\w)\w|[^\w\s]")
_PLAIN = re.compile(r"(?:[^\W\d_]|[ '’-])+")
_CONTRACTED = re.compile(r"['’]\w|-\w")


class Match(NamedTuple):
    """A term in a line, and what the translation has in its place."""

    start: int
    end: int
    put: str


@dataclass(frozen=True)
class Terms:
    """A glossary and protected strings."""

    glossary: Mapping[str, str]
    """Translations of terms."""
    protected: tuple[str, ...] = ()
    """Strings that the translation has as they are."""

    @classmethod
    def of(
        cls, glossary: Mapping[str, str] | None, protected: Sequence[str] | None
    ) -> "Terms | None":
        """Check what a user gave; None if it names no term."""
        terms = {" ".join(term.split()): _on_a_line(put) for term, put in (glossary or {}).items()}
        strings = tuple(dict.fromkeys(_on_a_line(text) for text in protected or ()))
        if empty := [term for term, put in terms.items() if not term or not put]:
            raise TextError(
                f"`glossary` must have a translation for each term, but that of “{empty[0]}” is "
                "empty; name it in `protected` if it stays as it is."
            )
        if not all(strings):
            raise TextError("`protected` must hold strings of text, but one is empty.")
        return cls(terms, strings) if terms or strings else None

    @cached_property
    def _by_first(self) -> dict[str, list[tuple[str, str, bool]]]:
        """List terms by their first character in lower case, the longest first."""
        terms = {(term, put, term == term.lower()) for term, put in self.glossary.items()}
        terms |= {(text, text, False) for text in self.protected}
        composed = {(unicodedata.normalize("NFC", term[0]), *term[1:]) for term in terms}
        ordered: dict[str, list[tuple[str, str, bool]]] = {}
        # What is protected wins over a glossary with the same term.
        for term, put, in_any_case in sorted(
            terms | composed, key=lambda term: (-len(term[0]), term[0] != term[1], term)
        ):
            ordered.setdefault(term[0].lower(), []).append((term, put, in_any_case))
        return ordered

    def only(self, is_wanted: Callable[[str], bool]) -> "Terms":
        """Return the protected strings that meet a condition."""
        return Terms({}, tuple(text for text in self.protected if is_wanted(text)))

    def matches(self, text: str) -> Iterator[Match]:
        """Find the terms of a line, in order; they do not overlap."""
        end = 0
        for place in _WORD_START.finditer(text):
            start = place.start()
            if start < end:
                continue
            for term, put, in_any_case in self._by_first.get(place[0].lower(), ()):
                there = text[start : start + len(term)]
                is_equal = there == term or (in_any_case and there.lower() == term)
                if is_equal and _is_whole(text, start, start + len(term)):
                    end = start + len(term)
                    # a name such as iPhone, or an address, has its own case
                    is_plain = put[1:] == put[1:].lower() and _PLAIN.fullmatch(put)
                    cased = in_case_of(there, put) if is_plain and there != term else put
                    yield Match(start, end, cased)
                    break


def _on_a_line(text: str) -> str:
    """Replace line ends and control characters by spaces."""
    return without_controls(" ".join(text.split()))[0].strip()


def in_case_of(source: str, target: str) -> str:
    """
    Write a translation in the case of its source: capitals, a first capital, or as it is.

    >>> in_case_of("DOG", "chien"), in_case_of("Dog", "chien"), in_case_of("dog", "chien")
    ('CHIEN', 'Chien', 'chien')
    """
    letters = [letter for letter in source if letter.isalpha()]
    if len(letters) > 1 and source.isupper():
        return target.upper()
    if letters and letters[0].isupper():
        return with_capital(target)
    return target


def with_capital(text: str) -> str:
    """Write the first letter of a text as a capital; `str.title` knows digraphs such as ǆ."""
    for place, character in enumerate(text):
        if character.isalpha():
            return f"{text[:place]}{character.title()}{text[place + 1 :]}"
    return text


def read_glossary(path: Path, warn: Callable[[str], None]) -> dict[str, str]:
    """
    Read terms and their translations: two columns with a tab between them.

    `warn`: called about terms with two translations, of which the first is used.

    Raises `TextError` with the line of an entry that is no such pair. Empty lines, and lines that
    begin with ``#``, are skipped.
    """
    entries: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(plain_lines(path), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) != 2 or not all(columns):
            raise TextError(
                f"{path} must hold a term, a tab and its translation in every line, but line "
                f"{number} is {line!r}."
            )
        term, put = columns
        first, where = entries.setdefault(term, (put, number))
        if first != put:
            warn(
                f"glossary {path} has two translations of “{term}”: “{first}” in line {where} and "
                f"“{put}” in line {number}; the first is used."
            )
    return {term: put for term, (put, _) in entries.items()}


def read_protected(path: Path) -> list[str]:
    """Read protected strings, one a line; empty lines are skipped."""
    return [line.strip() for line in plain_lines(path) if line.strip()]


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether a part of a text does not begin or end inside a word."""
    begins = _INSIDE_WORD.match(text[start]) and start > 0 and _INSIDE_WORD.match(text[start - 1])
    ends = _INSIDE_WORD.match(text[end - 1]) and (
        _INSIDE_WORD.match(text[end : end + 1]) or _CONTRACTED.match(text, end)
    )
    return not begins and not ends
