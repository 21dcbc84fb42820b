"""
Division of a line into text for the model and pieces that are held back.

::

    the big red dog 👍🏽 eats {{count}} apples
      text  "the big red dog "   held "👍🏽"   text " eats "   held "{{count}}"   text " apples"

Strings that no model translates, such as placeholders (`heedful.text.reading.patterns`), and terms
that the model cannot read or align are held back. So are parts that the vocabulary lacks, such as
an emoji sequence, a number or a word in another script. Placeholders, and protected strings that
normalization would change, are found before white space and accents are normalized, so they are
restored byte for byte.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal, NamedTuple

from heedful.text.lines import without_controls
from heedful.text.reading.case import has_plain_case
from heedful.text.reading.characters import EMOJI, SELECTORS, visible
from heedful.text.reading.letter_case import UNKNOWN, Languages, lower_case
from heedful.text.reading.patterns import held_forms
from heedful.text.reading.terms import UNSPACED, Terms
from heedful.text.reading.vocabulary import SourceVocabulary

Kind = Literal["text", "held", "term"]


class Piece(NamedTuple):
    """A part of a line."""

    text: str
    """Its text in the line."""
    kind: Kind = "text"
    """`text` is translated, `held` is cut out, and the translation of a `term` is replaced."""
    put: str = ""
    """Its replacement in the translation."""


# Start and end of a part of a text, and the piece that it becomes.
_Cut = tuple[int, int, Piece]


_SIGN = f"[{EMOJI}]"
_CLUSTER = f"{_SIGN}[{SELECTORS}]*"
# Vowel signs and other combining marks, which `\w` does not match: Latin, Semitic, Indic, Khmer.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0dff\u0e31-\u0e4e\u0eb1-\u0ecd\u0f18-\u0fbc\u102b-\u109d\u17b4-\u17d3\u200c\u200d"
)
_UNITS = re.compile(
    "[\U0001f1e6-\U0001f1ff]{2}|[0-9#*]\ufe0f?\u20e3"
    f"|{_CLUSTER}(?:\u200d{_CLUSTER})*"
    rf"|[^\W_](?:[\w{_MARKS}]|(?<=\d)[.,:/](?=\d)|['’‐‑-](?=\w))*"
    r"|[^\w\s]|_"
)
# A number before a word: 3-year-old, 12-month; not F-16 and CO2, which are names as a whole.
_NUMBERED_WORD = re.compile(
    r"(?P<number>\d[\d.,:/]*(?:[‐‑-]\d[\d.,:/]*)*)[‐‑-]"
    r"(?P<words>(?P<first>[^\W\d_]{3,})(?:[‐‑-][^\W\d_]+)*)"
)
_FIRST_MARKS = re.compile(r"[,;:.!?]+")
_LAST_MARKS = re.compile(r"[,;:]\s*\Z")
_OPENING, _CLOSING = "([{“„‚‘«‹「『（【<\"'", ")]}”“’’»›」』）】>\"'"


def cut_line(
    raw: str,
    terms: Terms | None,
    vocabulary: SourceVocabulary,
    *,
    holds: bool = True,
    aligns: bool = True,
    languages: Languages = UNKNOWN,
) -> list[Piece]:
    """
    Cut a line into pieces, in order; together they make up the prepared line.

    `holds`: whether untranslatable forms and unknown text are held back, in addition to terms.
    `aligns`: whether a term can be located in the translation; if not, it is held back.
    """
    if holds:  # the translation gets the held pieces and must not have these characters either
        raw = without_controls(raw.replace("\ufeff", ""))[0]
    pieces = [Piece(raw)]
    if holds:
        if terms is not None:
            unreadable = partial(_terms, terms.unreadable, vocabulary, aligns, languages)
            pieces = _cut_out(pieces, unreadable)
        pieces = _cut_out(pieces, partial(_forms, vocabulary))
        pieces = [_readable(piece) for piece in pieces]
    if terms is not None:
        pieces = _cut_out(pieces, partial(_terms, terms, vocabulary, aligns, languages))
    if holds:
        pieces = _cut_out(pieces, partial(_unknown, vocabulary))
        pieces = _with_marks(_merge(_with_brackets(pieces)))
    return _trim(pieces)


def unbroken_spans(
    text: str, terms: Terms | None, languages: Languages = UNKNOWN, *, holds: bool = True
) -> list[tuple[int, int]]:
    """
    Find the parts of a text that `cut_line` would hold back or treat as a term, in order.

    A text that is too long is not cut inside these parts.
    """
    spans: list[tuple[int, int]] = []
    if holds:
        spans += held_forms(text)
        spans += [
            unit.span()
            for unit in _UNITS.finditer(text)
            if unit.end() - unit.start() > 1 and not unit[0].isalnum()
        ]
    if terms is not None:
        # Terms match text with single blanks, so the position of each remaining character is
        # recorded.
        places = [
            place
            for place, sign in enumerate(text)
            if not (sign.isspace() and text[place - 1 : place].isspace()) and visible(sign)
        ]
        read = "".join(" " if text[place].isspace() else text[place] for place in places)
        for start, end, _ in terms.matches(read, languages):
            spans.append((places[start], places[end - 1] + 1))
    return sorted(spans)


def single_spaces(text: str) -> str:
    """Reduce each run of white space to a single space, including runs at the ends."""
    return " ".join(f"x{text}x".split())[1:-1]


def _readable(piece: Piece) -> Piece:
    """Normalize the characters of a piece of text."""
    return Piece(single_spaces(visible(piece.text))) if piece.kind == "text" else piece


def _cut_out(pieces: Sequence[Piece], find: Callable[[str], Iterator[_Cut]]) -> list[Piece]:
    """Cut parts out of the pieces of text; pieces that were cut out before stay as they are."""
    parts: list[Piece] = []
    for piece in pieces:
        here = 0
        for start, end, cut in find(piece.text) if piece.kind == "text" else ():
            parts += [Piece(piece.text[here:start]), cut]
            here = end
        parts.append(piece._replace(text=piece.text[here:]))
    return [part for part in parts if part.text]


def _forms(vocabulary: SourceVocabulary, text: str) -> Iterator[_Cut]:
    """Find strings that no model translates, except those with a subword of their own."""
    for start, end in held_forms(text):
        form = text[start:end]
        if vocabulary.cost(form) != 1:  # unlike “&apos;” where Moses tokenized the training text
            yield start, end, Piece(form, "held", form)


def _terms(
    terms: Terms, vocabulary: SourceVocabulary, aligns: bool, languages: Languages, text: str
) -> Iterator[_Cut]:
    """Find terms; the model reads those that it knows."""
    for start, end, put in terms.matches(text, languages):
        readable = single_spaces(visible(text[start:end]))
        is_known = not vocabulary.lacks_any(lower_case(readable, languages.source))
        if aligns and is_known and not any(held_forms(text[start:end])):
            yield start, end, Piece(readable, "term", put)
        else:
            yield start, end, Piece(text[start:end], "held", put)


def _unknown(vocabulary: SourceVocabulary, text: str) -> Iterator[_Cut]:
    """Find parts that the vocabulary lacks."""
    for unit in _UNITS.finditer(text):
        if _is_unknown(unit[0], vocabulary):
            # The hyphen after a number is dropped, because the model reads the words without it.
            number = _number_before_words(unit[0], vocabulary)
            unknown = unit[0][: len(number) + 1] if number else unit[0]
            yield (
                unit.start(),
                unit.start() + len(unknown),
                Piece(unknown, "held", number or unknown),
            )


def _number_before_words(unit: str, vocabulary: SourceVocabulary) -> str:
    """Return the number of a unit such as “3-year”; empty if its words are unknown."""
    match = _NUMBERED_WORD.fullmatch(unit)
    if match is None or not has_plain_case(match["words"]):
        return ""
    # Three letters with a capital are probably an abbreviation.
    is_word = match["first"].islower() or len(match["first"]) > 3
    read = lower_case(match["words"], vocabulary.language)
    is_known = not any(map(vocabulary.lacks, map(vocabulary.known_form, read)))
    return match["number"] if is_word and is_known else ""


def _is_unknown(unit: str, vocabulary: SourceVocabulary) -> bool:
    """Whether a word, a number or a symbol has no form that the vocabulary knows."""
    lacking = [sign for sign in unit if vocabulary.lacks(vocabulary.known_form(sign))]
    if not lacking:
        return False
    lower = (lower_case(sign, vocabulary.language) for sign in lacking)
    if all(map(str.isupper, lacking)) and not any(map(vocabulary.lacks_any, lower)):
        return not has_plain_case(unit)
    unspaced = _WITHOUT_SPACES.findall(unit)
    if all(map(vocabulary.lacks, map(vocabulary.known_form, unspaced))):
        return True
    # These scripts do not separate words, so a run is held back only if most of its characters are
    # unknown.
    return 2 * len(lacking) > len(unit)


_WITHOUT_SPACES = re.compile(f"[{UNSPACED}]")


def _with_brackets(pieces: Sequence[Piece]) -> list[Piece]:
    """Also hold back brackets or quotation marks around a piece, so the model never sees “()”."""
    grown = list(pieces)
    for place in range(1, len(grown) - 1):
        before, piece, after = grown[place - 1 : place + 2]
        if piece.kind != "held" or before.kind != "text" or after.kind != "text":
            continue
        first, last = before.text[-1:], after.text[:1]
        if first and last and (first, last) in zip(_OPENING, _CLOSING, strict=True):
            grown[place - 1] = Piece(before.text[:-1])
            grown[place] = Piece(f"{first}{piece.text}{last}", "held", f"{first}{piece.put}{last}")
            grown[place + 1] = Piece(after.text[1:])
    return [piece for piece in grown if piece.text]


def _merge(pieces: Sequence[Piece]) -> list[Piece]:
    """Join held pieces that have only white space and punctuation between them."""
    joined: list[Piece] = []
    for piece in pieces:
        joined.append(piece)
        is_over_text = len(joined) > 2 and joined[-2].kind == "text"
        has_words = is_over_text and any(map(str.isalnum, joined[-2].text))
        parts = joined[-3:] if is_over_text and not has_words else joined[-2:]
        if len(parts) > 1 and parts[0].kind == piece.kind == "held":
            text = "".join(part.text for part in parts)
            put = "".join(part.put if part.kind == "held" else part.text for part in parts)
            joined[-len(parts) :] = [Piece(text, "held", put)]
    return joined


def _with_marks(pieces: Sequence[Piece]) -> list[Piece]:
    """Also hold back punctuation that would begin the model's line or follow other punctuation."""
    grown = list(pieces)
    for place, piece in enumerate(grown[:-1]):
        after = grown[place + 1]
        if piece.kind != "held" or after.kind != "text":
            continue
        before = grown[place - 1] if place else Piece("")
        is_first = place == 0 or (place == 1 and not before.text.strip())
        if is_first and (marks := _FIRST_MARKS.match(after.text)):
            grown[place] = Piece(piece.text + marks[0], "held", piece.put + marks[0])
            grown[place + 1] = Piece(after.text[marks.end() :])
        elif before.kind == "text" and _FIRST_MARKS.match(after.text):
            marks = _LAST_MARKS.search(before.text)
            if marks is not None:
                grown[place - 1] = Piece(before.text[: marks.start()])
                grown[place] = Piece(marks[0] + piece.text, "held", marks[0] + piece.put)
    return [piece for piece in grown if piece.text]


def _trim(pieces: Sequence[Piece]) -> list[Piece]:
    """Drop white space at the ends of a line."""
    read = list(pieces)
    if read and read[0].kind == "text":
        read[0] = Piece(read[0].text.lstrip())
    if read and read[-1].kind == "text":
        read[-1] = Piece(read[-1].text.rstrip())
    return [piece for piece in read if piece.text]
