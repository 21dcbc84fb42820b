"""A translation under revision, with the positions of its words."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

Span = tuple[int, int]
Link = tuple[int, int]
# Alignments separate words at spaces and tabs; other white space is part of a word.
_BLANKS = " \t"
_WORD = re.compile(f"[^{_BLANKS}]+")


class Edit(NamedTuple):
    """A replacement of a part of a text; an insertion if the span is empty."""

    start: int
    end: int
    text: str


class Draft(NamedTuple):
    """A text, the spans of its words, and their links to words of the source."""

    text: str
    spans: tuple[Span, ...]
    links: tuple[Link, ...]
    """Pairs of a source word and a word of this text."""

    @property
    def words(self) -> list[str]:
        """The words."""
        return [self.text[start:end] for start, end in self.spans]

    def edited(self, edits: Sequence[Edit]) -> "Draft":
        """
        Replace parts of the text, and adjust the spans of the words.

        `edits`: in order, without overlaps.
        """
        if not edits:
            return self
        parts, here = [], 0
        for edit in edits:
            parts += [self.text[here : edit.start], edit.text]
            here = edit.end
        text = "".join([*parts, self.text[here:]])
        shift = _Shift(edits)
        spans = [(shift.start(start), shift.end(end)) for start, end in self.spans]
        return Draft(text, tuple(spans), self.links)

    def without_empty(self) -> "Draft":
        """Drop words that were cut, and their links."""
        alive = [number for number, (start, end) in enumerate(self.spans) if start < end]
        numbers = {number: place for place, number in enumerate(alive)}
        links = tuple((i, numbers[j]) for i, j in self.links if j in numbers)
        return Draft(self.text, tuple(self.spans[number] for number in alive), links)


class _Shift:
    """A map from positions in a text to positions in the edited text."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._edits = edits
        self._starts = [edit.start for edit in edits]
        self._ends = [edit.end for edit in edits]
        grown = (len(edit.text) - (edit.end - edit.start) for edit in edits)
        self._moved = [0, *accumulate(grown)]

    def start(self, place: int) -> int:
        """Return the new position of a word's start, which follows any insertion there."""
        before = bisect_right(self._ends, place)
        inside = before < len(self._edits) and self._starts[before] < place
        return (self._starts[before] if inside else place) + self._moved[before]

    def end(self, place: int) -> int:
        """Return the new position of a word's end, which precedes any insertion there."""
        count = bisect_left(self._starts, place)  # number of edits that begin before the position
        if count and self._ends[count - 1] > place:
            edit = self._edits[count - 1]
            return edit.start + self._moved[count - 1] + len(edit.text)
        return place + self._moved[count]


def draft(text: str, words: Sequence[str], links: Iterable[Link]) -> Draft:
    """
    Find the words of a translation in its text.

    `words`: the words to which the links refer. If the text does not consist of them, its own words
    are used, without links.
    """
    spans: list[Span] = []
    here = 0
    for word in words:
        start = text.find(word, here)
        if start < 0 or text[here:start].strip(_BLANKS):
            spans = []
            break
        here = start + len(word)
        spans.append((start, here))
    if spans and not text[here:].strip(_BLANKS):
        return Draft(text, tuple(spans), tuple(links))
    return Draft(text, tuple(word_spans(text)), ())


def word_spans(text: str) -> list[Span]:
    """Find the words between spaces and tabs."""
    return [match.span() for match in _WORD.finditer(text)]


def joined_edits(edits: Iterable[Edit]) -> list[Edit]:
    """Sort edits; join those that overlap or insert at the same position, without double spaces."""
    joined: list[Edit] = []
    for edit in sorted(edits, key=lambda edit: edit.start):
        last = joined[-1] if joined else None
        meets = last is not None and (edit.start < last.end or edit[:2] == last[:2])
        if last is not None and (meets or (edit.start == last.end and edit.start == edit.end)):
            text = edit.text
            if last.text.endswith(" ") and text.startswith(" "):
                text = text[1:]
            joined[-1] = Edit(last.start, max(last.end, edit.end), last.text + text)
        else:
            joined.append(edit)
    return joined
