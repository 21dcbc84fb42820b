"""
A user's terms: a glossary and protected strings.

A term matches whole words only, so inflected forms are not replaced. Of terms that overlap, the
first in the line is used, and of terms with the same start the longest. A glossary term without
capitals matches in any case, and its translation takes the case of the match. Other terms and
protected strings match exactly. Vowel signs and other combining marks are parts of their words.
"""

import re
import unicodedata
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from heedful.errors import TextError
from heedful.text.lines import plain_lines, two_columns, without_controls
from heedful.text.reading.characters import visible
from heedful.text.reading.letter_case import UNKNOWN, Languages, in_case_of, lower_case
from heedful.text.reading.patterns import held_forms

# Scripts written without spaces, in which a term may stand next to any character.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f"
)
_INSIDE_WORD = re.compile(rf"[^\W{UNSPACED}]")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_WORD_START = re.compile(rf"[{UNSPACED}]|(?<!\w)\w|[^\w\s]")
_PLAIN = re.compile(r"(?:[^\W\d_]|[ '’-])+")
_CONTRACTED = re.compile(r"['’]\w|-\w")


class Match(NamedTuple):
    """A term in a line, and its replacement in the translation."""

    start: int
    end: int
    put: str


class _Term(NamedTuple):
    """A term in the form that is looked up."""

    text: str
    put: str
    in_any_case: bool


class _Index:
    """
    Terms, indexed by their first letter, length and text.

    Each position of a line needs one lookup for each length, however many terms there are. If
    several terms have the same text, the first is used.
    """

    def __init__(self, terms: Iterable[_Term]) -> None:
        self._exact: dict[str, str] = {}
        self._in_any_case: dict[str, str] = {}
        lengths: dict[str, set[int]] = {}
        for text, put, in_any_case in terms:
            lengths.setdefault(_index_letter(text), set()).add(len(text))
            self._exact.setdefault(text, put)
            if in_any_case:
                self._in_any_case.setdefault(text, put)
        self.lengths = lengths
        """Lengths of the terms, by first letter."""

    def find(self, text: str, languages: Languages) -> str | None:
        """Return the replacement for a text; a term with the same capitals wins."""
        if (put := self._exact.get(text)) is not None:
            return put
        lower = lower_case(text, languages.source)
        if len(lower) != len(text) or (put := self._in_any_case.get(lower)) is None:
            return None
        # a name such as iPhone, or an address, has its own case
        is_plain = put[1:] == put[1:].lower() and _PLAIN.fullmatch(put)
        return in_case_of(text, put, languages.target) if is_plain else put


class Glossary(dict[str, str]):
    """
    Immutable terms and their translations.

    Indexes are computed once, so many requests can share a large glossary.
    """

    @classmethod
    def of(cls, terms: Mapping[str, str]) -> "Glossary":
        """Build a glossary; raises `TextError` if a term or its translation is empty."""
        if isinstance(terms, cls):
            return terms
        read = cls({" ".join(term.split()): _on_a_line(put) for term, put in terms.items()})
        if empty := [term for term, put in read.items() if not term or not put]:
            raise TextError(
                f"`glossary` must have nonempty terms and translations, but “{empty[0]}” or its "
                "translation is empty; to keep a term unchanged, name it in `protected`."
            )
        return read

    @cached_property
    def index(self) -> _Index:
        """The index of the terms, including forms with composed letters and with ss for ß."""
        terms = [_Term(text, put, text == text.lower()) for text, put in self.items()]
        swiss = [_Term(term.text.replace("ß", "ss"), term.put, True) for term in terms if term[2]]
        return _Index([*terms, *_compose(terms), *swiss, *_compose(swiss)])

    @cached_property
    def unreadable(self) -> "Glossary":
        """The terms that normalization would change, or that contain an untranslatable form."""
        return Glossary({term: put for term, put in self.items() if _is_changed(term)})


@dataclass(frozen=True)
class Terms:
    """A glossary and protected strings."""

    glossaries: tuple[Glossary, ...]
    """Translations of terms; for the same term the first glossary wins."""
    protected: tuple[str, ...] = ()
    """Strings that stay unchanged in the translation."""

    @classmethod
    def of(
        cls, glossary: Mapping[str, str] | None, protected: Sequence[str] | None
    ) -> "Terms | None":
        """
        Check and join the arguments; return None if both are empty.

        A `ChainMap` holds several glossaries.
        """
        layers = glossary.maps if isinstance(glossary, ChainMap) else [glossary or {}]
        glossaries = tuple(filter(None, map(Glossary.of, layers)))
        strings = _on_lines(tuple(protected or ()))
        if not all(strings):
            raise TextError("`protected` must hold nonempty strings, but one is empty.")
        return cls(glossaries, strings) if glossaries or strings else None

    @property
    def glossary(self) -> dict[str, str]:
        """Translations of all terms."""
        return dict(ChainMap(*self.glossaries))

    @cached_property
    def _indexes(self) -> tuple[_Index, ...]:
        """List the indexes; a protected string wins over the same glossary term."""
        return (_protected_index(self.protected), *(terms.index for terms in self.glossaries))

    @cached_property
    def unreadable(self) -> "Terms":
        """The terms to look up before normalization, as selected by `_is_changed`."""
        changed = tuple(terms.unreadable for terms in self.glossaries)
        return Terms(changed, _changed_strings(self.protected))

    def matches(self, text: str, languages: Languages = UNKNOWN) -> Iterator[Match]:
        """Find the terms in a line, in order; they do not overlap."""
        end = 0
        for place in _WORD_START.finditer(text):
            start, letter = place.start(), _index_letter(place[0])
            if start < end:
                continue
            lengths = (index.lengths.get(letter, ()) for index in self._indexes)
            for length in sorted(set(chain(*lengths)), reverse=True):
                if start + length > len(text):
                    continue
                candidate = text[start : start + length]
                puts = (index.find(candidate, languages) for index in self._indexes)
                put = next((put for put in puts if put is not None), None)
                if put is not None and _is_whole(text, start, start + length):
                    end = start + length
                    yield Match(start, end, put)
                    break


@lru_cache(maxsize=8)
def _protected_index(strings: tuple[str, ...]) -> _Index:
    """Index protected strings, including their forms with composed letters."""
    terms = [_Term(text, text, False) for text in strings]
    return _Index([*terms, *_compose(terms)])


@lru_cache(maxsize=8)
def _changed_strings(strings: tuple[str, ...]) -> tuple[str, ...]:
    """List the strings that normalization would change, or that contain an untranslatable form."""
    return tuple(filter(_is_changed, strings))


@lru_cache(maxsize=8)
def _on_lines(strings: tuple[str, ...]) -> tuple[str, ...]:
    """Put each string on one line, and drop repeated strings."""
    return tuple(dict.fromkeys(map(_on_a_line, strings)))


def _compose(terms: Iterable[_Term]) -> list[_Term]:
    """Compose the letters of terms."""
    return [term._replace(text=unicodedata.normalize("NFC", term.text)) for term in terms]


def _on_a_line(text: str) -> str:
    """Replace line ends and control characters with spaces."""
    return without_controls(" ".join(text.split()))[0].strip()


def read_glossary(path: Path, warn: Callable[[str], None]) -> dict[str, str]:
    """
    Read terms and their translations: two columns with a tab between them.

    `warn`: called about terms with two translations; the first is used.

    Raises `TextError` with the number of a line that does not have this form. Empty lines, and
    lines that begin with ``#``, are skipped.
    """
    entries: dict[str, tuple[str, int]] = {}
    for number, term, put in two_columns(path, "term", "#"):
        first, where = entries.setdefault(term, (put, number))
        if first != put:
            warn(
                f"glossary {path} has two translations of “{term}”: “{first}” in line {where} and "
                f"“{put}” in line {number}; the first is used."
            )
    return {term: put for term, (put, _) in entries.items()}


def read_protected(path: Path) -> list[str]:
    """Read protected strings, one per line; empty lines are skipped."""
    return [line.strip() for line in plain_lines(path) if line.strip()]


def _index_letter(text: str) -> str:
    """Return the letter under which a term is listed, the same for every form of the letter i."""
    return "i" if text[0] in "İIı" else text[0].lower()


def _is_changed(text: str) -> bool:
    """Whether normalization would change a string, or it contains an untranslatable form."""
    return " ".join(visible(text).split()) != text or any(held_forms(text))


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether a part of a text neither begins nor ends inside a word."""
    before, first, last, after = (
        text[start - 1 : start],
        text[start],
        text[end - 1],
        text[end : end + 1],
    )
    if (before and _is_mark(first)) or _is_mark(after):  # a letter and its mark belong together
        return False
    begins = _is_inside_word(first) and _is_inside_word(before)
    ends = _is_inside_word(last) and (_is_inside_word(after) or _CONTRACTED.match(text, end))
    return not begins and not ends


def _is_inside_word(sign: str) -> bool:
    """Whether a character belongs to a word of a script with spaces between words."""
    return _INSIDE_WORD.match(sign) is not None or (_is_mark(sign) and not _UNSPACED.match(sign))


def _is_mark(sign: str) -> bool:
    """Whether a character belongs to the letter before it: a combining mark or a joiner."""
    return bool(sign) and (unicodedata.category(sign)[0] == "M" or sign in "\u200c\u200d")
