"""
Terms that the user has decided: a glossary, and what is protected.

A term is met as a whole word, never as a part of one, so inflected forms are left alone. Where two
terms overlap, the longest wins. A term of the glossary without capitals is met in any case, and its
translation then has that case; other terms, and what is protected, are met exactly. Vowel signs and
other combining marks belong to the word that they stand in.
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
from heedful.text.reading.characters import visible
from heedful.text.reading.letter_case import UNKNOWN, Languages, in_case_of, lower_case
from heedful.text.reading.patterns import held_forms

# Scripts written without spaces: there a term may stand beside any character.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f"
)
_INSIDE_WORD = re.compile(rf"[^\W{UNSPACED}]")
_UNSPACED = re.compile(f"[{UNSPACED}]")
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
        # Capitals, and Switzerland, have no ß.
        terms |= {(term.replace("ß", "ss"), put, True) for term, put, is_low in terms if is_low}
        terms |= {(text, text, False) for text in self.protected}
        composed = {(unicodedata.normalize("NFC", term[0]), *term[1:]) for term in terms}
        ordered: dict[str, list[tuple[str, str, bool]]] = {}
        # What is protected wins over a glossary with the same term.
        for term, put, in_any_case in sorted(
            terms | composed, key=lambda term: (-len(term[0]), term[0] != term[1], term)
        ):
            ordered.setdefault(_index_letter(term), []).append((term, put, in_any_case))
        return ordered

    @cached_property
    def unreadable(self) -> "Terms":
        """The terms that are not read as they stand, so that they are looked for before."""
        changed = {term: put for term, put in self.glossary.items() if _is_changed(term)}
        return Terms(changed, tuple(filter(_is_changed, self.protected)))

    def matches(self, text: str, languages: Languages = UNKNOWN) -> Iterator[Match]:
        """Find the terms of a line, in order; they do not overlap."""
        end = 0
        for place in _WORD_START.finditer(text):
            start = place.start()
            if start < end:
                continue
            for term, put, in_any_case in self._by_first.get(_index_letter(place[0]), ()):
                there = text[start : start + len(term)]
                is_equal = there == term or (
                    in_any_case and lower_case(there, languages.source) == term
                )
                if is_equal and _is_whole(text, start, start + len(term)):
                    end = start + len(term)
                    # a name such as iPhone, or an address, has its own case
                    is_plain = put[1:] == put[1:].lower() and _PLAIN.fullmatch(put)
                    is_cased = is_plain and there != term
                    cased = in_case_of(there, put, languages.target) if is_cased else put
                    yield Match(start, end, cased)
                    break


def _on_a_line(text: str) -> str:
    """Replace line ends and control characters by spaces."""
    return without_controls(" ".join(text.split()))[0].strip()


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


def _index_letter(text: str) -> str:
    """Return the letter under which a term is listed, the same for every form of the letter i."""
    return "i" if text[0] in "İIı" else text[0].lower()


def _is_changed(text: str) -> bool:
    """Whether a string would not be read as it is."""
    return " ".join(visible(text).split()) != text or any(held_forms(text))


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether a part of a text does not begin or end inside a word."""
    before, first, last, behind = text[:start][-1:], text[start], text[end - 1], text[end : end + 1]
    if (before and _is_mark(first)) or _is_mark(behind):  # in no script
        return False
    begins = _is_inside_word(first) and _is_inside_word(before)
    ends = _is_inside_word(last) and (_is_inside_word(behind) or _CONTRACTED.match(text, end))
    return not begins and not ends


def _is_inside_word(sign: str) -> bool:
    """Whether a character is one of a word, in a script with spaces between words."""
    return _INSIDE_WORD.match(sign) is not None or (_is_mark(sign) and not _UNSPACED.match(sign))


def _is_mark(sign: str) -> bool:
    """Whether a character belongs to the letter before it: a combining mark or a joiner."""
    return bool(sign) and (unicodedata.category(sign)[0] == "M" or sign in "\u200c\u200d")
