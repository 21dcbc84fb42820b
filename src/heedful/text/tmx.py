"""
Translation memories in TMX, the Translation Memory eXchange format.

A memory is a list of units (``<tu>``). A unit has one variant (``<tuv>``) for each of its
languages, and a variant has one segment (``<seg>``)::

    <tu>
      <tuv xml:lang="en"><seg>Press <bpt i="1">&lt;b></bpt>Enter<ept i="1">&lt;/b></ept></seg></tuv>
      <tuv xml:lang="de"><seg>Die Eingabetaste drücken</seg></tuv>
    </tu>

Only the text of a segment is read. In TMX 1.4b, ``<bpt>``, ``<ept>``, ``<it>``, ``<ph>`` and
``<ut>`` hold codes of the original format. ``<sub>`` holds text inside such a code, such as a
footnote or the title of a link. All of these are dropped. ``<hi>`` marks a piece of the text
itself, which stays.
"""

from collections.abc import Iterable, Iterator, Sequence
from io import BufferedIOBase

from heedful.errors import TextError
from heedful.text.markup import UNREADABLE, read_events
from heedful.text.skipped_rows import SkippedRows

_CODES = frozenset(("bpt", "ept", "it", "ph", "ut", "sub"))
_FLAT = ("tu", "tuv")
_MOST_NAMED = 20

FORBIDDEN = "has a character or a reference that XML does not allow"
"""Reason why a segment is skipped."""


def read_units(
    stream: BufferedIOBase, name: str, parts: Sequence[str], skipped: SkippedRows
) -> Iterator[tuple[str, ...]]:
    """
    Read some languages of a translation memory.

    A unit with a character or a reference that XML does not allow is skipped.

    Language codes are matched without regard to case, and ``-`` equals ``_``. A unit has ``en`` if
    it has this code or a variant such as ``en-GB``; of several variants the first is used.

    Raises `TextError` if a language is in no unit, no unit has all languages, units are nested, or
    the file is not XML.
    """
    wanted = [_normal(part.partition("+")[0]) for part in parts]
    needed = dict.fromkeys(_normal(code) for part in parts for code in part.split("+"))
    languages: dict[str, str] = {}
    unit: dict[str, str] = {}
    language, has_row, number = "", False, 0
    for tag, attributes, text in read_events(stream, name, _CODES, _FLAT):
        if attributes is not None:
            if tag == "tu":
                unit = {}
                number += 1
            elif tag == "tuv":
                code = attributes.get("xml:lang", attributes.get("lang", ""))
                language = _normal(code)
                languages.setdefault(language, code)
        elif tag == "seg":
            unit.setdefault(language, text)
        elif tag == "tuv":
            language = ""
        elif tag == "tu":
            row = {code: _text_in(unit, code) for code in needed}
            if any(text and UNREADABLE in text for text in row.values()):
                skipped.add(name, f"unit {number:,}", FORBIDDEN)
            elif None not in row.values():
                has_row = True
                yield tuple(row[code] or "" for code in wanted)
    if not has_row:
        raise _nothing(name, needed, languages)


def join_parts(part: str, other_part: str) -> str:
    """Restrict a language of a memory to the units that also have the other language."""
    return "+".join(dict.fromkeys([*part.split("+"), *other_part.split("+")]))


def _normal(code: str) -> str:
    """Normalize a language code."""
    return code.replace("_", "-").lower()


def _text_in(unit: dict[str, str], code: str) -> str | None:
    """Return the text of a unit in a language or else in a variant of it (en-GB for en)."""
    if code in unit:
        return unit[code]
    return next((unit[language] for language in unit if language.startswith(f"{code}-")), None)


def _nothing(name: str, needed: Iterable[str], languages: dict[str, str]) -> TextError:
    """Build the error with the available languages, or with those that never occur together."""
    for code in needed:
        if _text_in(languages, code) is None:
            names = [f"“{language}”" for language in languages.values() if language]
            listed = ", ".join(names[:_MOST_NAMED]) + ", …" * (len(names) > _MOST_NAMED)
            return TextError(
                f"{name} must hold text in the language “{code}”, but it holds "
                f"{listed or 'no text in any'}; give a language that it holds."
            )
    return TextError(
        f"{name} must hold units in “{'” and “'.join(needed)}” together, but each of its units "
        "lacks at least one of these languages; name other languages."
    )
