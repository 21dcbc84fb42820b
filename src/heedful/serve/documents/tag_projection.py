"""
Projection of inline tags onto a translation by means of word alignment.

::

    source   The <b>red</b> dog .          links  The-Le  red-rouge  dog-chien
    target   Le  chien  <b>rouge</b> .

An element encloses the run of target words with the most links to its own words and the fewest
links to other words. Nested elements stay nested, and each tag is written once. An element without
links is inserted at the same relative position as in the source.
"""

import html
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from heedful.serve.documents.html_blocks import Atom, AtomKind

Links = Iterable[tuple[int, int]]
"""Pairs of the indices of a source word and a target word; spaces separate words."""


Span = tuple[int, int]
# Scripts without spaces between words: each character counts as a word.
_LONG = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_LONG += "\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_LONG}]|[^\s{_LONG}]+")
_SPACED = re.compile(r"\S+")
_UNSPACED = re.compile(rf"[{_LONG}]{{4}}")
# Cost of a target word without links inside an element. It is small, so that an element may enclose
# articles, but not zero, so that an element does not grow without reason.
_UNLINKED = 0.1
# No real sentence has more tags. If there are more, each tag is inserted at the same fraction of
# the sentence, because the time to find spans is quadratic in the number of tags.
_MAX_MARKS = 300
# The text of an untranslated element may be at most this many characters after that fraction.
_REACH = 200
# A character of a word; in scripts without spaces, no character continues a word.
_IN_WORD = re.compile(rf"[^\W{_LONG}]")
# Comments and processing instructions often come in pairs, so they stay in order.
_ORDERED = ("<!", "<?")


class Mark(NamedTuple):
    """A tag inside a sentence."""

    atom: Atom
    start: int
    """Its position in the sentence."""
    end: int
    """Its end, equal to `start` except for visible untranslated elements."""


@dataclass
class _Element:
    """An element of the source sentence, and its span in the target."""

    start: int
    end: int
    before: str = ""
    after: str = ""
    name: str = ""
    kept: str | None = None
    inside: list["_Element"] = field(default_factory=list)
    # Whether its start or end tag is outside the sentence: it encloses everything on that side.
    from_start: bool = False
    to_end: bool = False
    place: Span = (0, 0)

    @property
    def is_point(self) -> bool:
        """Whether it contains no text."""
        return self.start >= self.end

    @property
    def at_edge(self) -> bool:
        """Whether its start or end tag is outside the sentence."""
        return self.from_start or self.to_end


def place(
    source: str,
    marks: Sequence[Mark],
    target: str,
    links: Links | None,
    escape: Callable[[str], str],
) -> str:
    """Insert the markup of the source into its translation, and escape the text."""
    if len(marks) > _MAX_MARKS:
        return _by_share(source, marks, target, escape)
    root = _tree(marks, len(source))
    root.place = (0, len(target))
    _assign_spans(root, _Words(source, target, links))
    return _write_element(root, target, escape)


def escape_html(text: str) -> str:
    """Escape plain text for HTML."""
    # For text content only, not for attributes: quotation marks stay as they are.
    return html.escape(text, quote=False)


def _by_share(source: str, marks: Sequence[Mark], target: str, escape: Callable[[str], str]) -> str:
    """Insert tags at their relative positions between the untranslated elements, in order."""
    out: list[str] = []
    first, there, here = 0, 0, 0
    for number, mark in enumerate(marks):
        if mark.start == mark.end:
            continue
        share = (mark.start - there) / (len(source) - there)
        latest = here + round(share * (len(target) - here)) + _REACH
        text = source[mark.start : mark.end]
        at = _find_whole(text, target, here, latest)
        if at >= 0:
            between = target[here:at]
            out.append(_spread(marks[first:number], (there, mark.start), between, escape))
            out.append(mark.atom.raw)
            first, there, here = number + 1, mark.end, at + len(text)
    return "".join([*out, _spread(marks[first:], (there, len(source)), target[here:], escape)])


def _find_whole(text: str, target: str, start: int, end: int) -> int:
    """Find text that is not a part of a longer word; -1 if there is none."""
    at = target.find(text, start, end)
    while at >= 0:
        after = at + len(text)
        if not (_IN_WORD.match(target[at - 1 : at]) or _IN_WORD.match(target[after : after + 1])):
            break
        at = target.find(text, at + 1, end)
    return at


def _spread(marks: Sequence[Mark], source: Span, target: str, escape: Callable[[str], str]) -> str:
    """Insert each tag at the relative position that it has in a span of the source, in order."""
    out, here = [], 0
    for mark in marks:
        share = (mark.start - source[0]) / max(1, source[1] - source[0])
        where = max(here, round(share * len(target)))
        # Do not insert a tag inside a word.
        while here < where < len(target) and all(
            map(_IN_WORD.match, target[where - 1 : where + 1])
        ):
            where -= 1
        is_kept = mark.atom.part is AtomKind.KEPT
        raw = _with_spaces(mark.atom.raw, target, where) if is_kept else mark.atom.raw
        out += [escape(target[here:where]), raw]
        here = where
    return "".join([*out, escape(target[here:])])


def _tree(marks: Iterable[Mark], length: int) -> _Element:
    """Match start tags with end tags."""
    root = _Element(0, length)
    waiting = [root]
    for mark in marks:
        part, raw, name = mark.atom.part, mark.atom.raw, mark.atom.name
        if part is AtomKind.OPEN:
            waiting.append(_Element(mark.start, length, raw, name=name))
        elif part is AtomKind.CLOSE:
            _close(waiting, raw, name, mark.start)
        elif part is AtomKind.KEPT:
            waiting[-1].inside.append(_Element(mark.start, mark.end, kept=raw))
        else:
            waiting[-1].inside.append(_Element(mark.start, mark.start, raw))
    while len(waiting) > 1:
        last = waiting.pop()
        last.to_end = True
        waiting[-1].inside.append(last)
    return root


def _close(waiting: list[_Element], raw: str, name: str, position: int) -> None:
    """Close the element that an end tag belongs to."""
    places = [k for k in range(len(waiting) - 1, 0, -1) if waiting[k].name == name]
    if places:
        # Open elements inside this element have no end tag here, so their start tags stay alone.
        while len(waiting) > places[0] + 1:
            alone = waiting.pop()
            point = _Element(alone.start, alone.start, alone.before)
            waiting[-1].inside += [point, *alone.inside]
        closed = waiting.pop()
        closed.end, closed.after = position, raw
        waiting[-1].inside.append(closed)
    elif len(waiting) == 1:
        root = waiting[0]
        root.inside = [_Element(0, position, after=raw, inside=root.inside, from_start=True)]
    else:
        waiting[-1].inside.append(_Element(position, position, raw))


class _Words:
    """The spans of the source and target words, and the links between them."""

    def __init__(self, source: str, target: str, links: Links | None) -> None:
        self.text, self.target_text = source, target
        # Links count words between spaces, so they are of no use in text without spaces.
        unspaced = _UNSPACED.search(source) or _UNSPACED.search(target)
        pattern = _WORD if unspaced else _SPACED
        self.source = [match.span() for match in pattern.finditer(source)]
        self.target = [match.span() for match in pattern.finditer(target)]
        self.linked: list[list[int]] = [[] for _ in self.target]
        for i, j in () if unspaced else links or ():
            if 0 <= i < len(self.source) and 0 <= j < len(self.target):
                self.linked[j].append(i)
        if not any(self.linked) and self.source:
            share = len(self.source) / max(1, len(self.target))
            self.linked = [[int((j + 0.5) * share)] for j in range(len(self.target))]
        self._translated: list[list[int]] = [[] for _ in self.source]
        for j, sources in enumerate(self.linked):
            for i in sources:
                self._translated[i].append(j)
        self._unrelated = [-1.0 if sources else -_UNLINKED for sources in self.linked]

    def covered(self, element: _Element) -> Span:
        """Find the source words that an element touches."""
        touched = _touched_words(self.source, (element.start, element.end))
        return (touched[0], touched[-1] + 1) if touched else (0, 0)

    def inside(self, span: Span) -> list[tuple[int, Span]]:
        """Find the target words that overlap a span, clipped to the span."""
        return [(j, self.stretch(j, j, span)) for j in _touched_words(self.target, span)]

    def stretch(self, first: int, last: int, clip: Span) -> Span:
        """Return the span from one target word to another, clipped to `clip`."""
        return max(self.target[first][0], clip[0]), min(self.target[last][1], clip[1])

    def translations(self, source: int, span: Span) -> list[Span]:
        """Find the target words in a span that translate a source word, in order."""
        inside = _touched_words(self.target, span)
        return [self.stretch(j, j, span) for j in self._translated[source] if j in inside]

    def weights(self, source_words: Span) -> list[float]:
        """Score target words: 1 if all links go to `source_words`, -1 if none; unlinked near 0."""
        weights = self._unrelated.copy()
        for j in {j for i in range(*source_words) for j in self._translated[i]}:
            sources = self.linked[j]
            weights[j] = (
                2 * sum(source_words[0] <= i < source_words[1] for i in sources) / len(sources) - 1
            )
        return weights

    def targets(self, element: _Element) -> set[int]:
        """Find the target words that translate the words of an element."""
        return {j for i in range(*self.covered(element)) for j in self._translated[i]}

    def copied(self, element: _Element) -> Span | None:
        """Find an element's text in the target if source and target each contain it once."""
        text = self.text[element.start : element.end].strip()
        if not text or text not in self.target_text:
            return None
        letters = re.escape(text)
        for pattern in (rf"(?<!\w){letters}(?!\w)", letters):
            here = list(re.finditer(pattern, self.text))
            there = list(re.finditer(pattern, self.target_text))
            if len(here) == len(there) == 1:
                return there[0].span()
        return None


def _touched_words(words: Sequence[Span], span: Span) -> range:
    """Find the indices of the words that a span touches; `words` must be sorted."""
    first = bisect_right(words, span[0], key=itemgetter(1))
    return range(first, max(first, bisect_left(words, span[1], key=itemgetter(0))))


def _assign_spans(parent: _Element, words: _Words) -> None:
    """Assign a span of the target to each child element, the most certain one first."""
    room, taken = parent.place, list[Span]()
    inside = [element for element in parent.inside if not element.is_point]
    targets = [words.targets(element) for element in inside]
    # For each element: the target words that belong to its siblings but not to itself.
    sibling_words = {
        id(element): set[int]().union(*targets[:place], *targets[place + 1 :]) - targets[place]
        for place, element in enumerate(inside)
    }
    wanted = [_best_span(element, [room], words, sibling_words[id(element)]) for element in inside]
    # Elements at an edge of the sentence come first, because one of their ends is fixed.
    for score, element, span in sorted(
        wanted, key=lambda candidate: (not candidate[1].at_edge, -candidate[0])
    ):
        if any(span[0] < end and start < span[1] for start, end in taken):
            score, _, span = _best_span(
                element, _free(room, taken), words, sibling_words[id(element)]
            )
        if score <= 0 and not element.at_edge:
            span = _free_position(element, _free(room, taken), words, parent)
        element.place = span
        taken.append(span)
    reached = room[0]
    for element in parent.inside:
        if element.is_point:
            where = _point(element.start, words, parent)
            if element.before.startswith(_ORDERED):
                where = reached = max(where, reached)
            # It must not be inside a sibling.
            where = next((start for start, end in taken if start < where < end), where)
            element.place = (where, where)
        _assign_spans(element, words)


def _free(room: Span, taken: Sequence[Span]) -> list[Span]:
    """Return the unassigned parts of a span."""
    edges = [room[0], *(edge for span in sorted(taken) for edge in span), room[1]]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _best_span(
    element: _Element, free: Sequence[Span], words: _Words, sibling_words: Collection[int]
) -> tuple[float, _Element, Span]:
    """Find the target span with the highest score; words of siblings lower the score."""
    among = words.covered(element)
    if element.at_edge:
        return _wanted_at_edge(element, free[0 if element.from_start else -1], words, among)
    copied = words.copied(element)
    if copied and any(start <= copied[0] and copied[1] <= end for start, end in free):
        return math.inf, element, copied
    best, best_score = (free[0][0], free[0][0]), 0.0
    weights = words.weights(among)
    for j in sibling_words:
        weights[j] -= 1
    for room in free:
        score, begin, best_begin = -1.0, 0, -1
        for j in _touched_words(words.target, room):
            if score < 0:
                score, begin = 0.0, j
            score += weights[j]
            # A word of another element between two words of this element does not divide it.
            if score > best_score or (score == best_score > 0 and begin == best_begin):
                best, best_score, best_begin = words.stretch(begin, j, room), score, begin
    return best_score, element, _trim(element, best, words)


def _wanted_at_edge(
    element: _Element, span: Span, words: _Words, source_words: Span
) -> tuple[float, _Element, Span]:
    """Find the target span of an element whose start or end tag is outside the sentence."""
    inside, weights = words.inside(span), words.weights(source_words)
    best = (span[0], span[0]) if element.from_start else (span[1], span[1])
    score, best_score = 0.0, -math.inf
    for j, (start, end) in inside if element.from_start else reversed(inside):
        score += weights[j]
        # It encloses at least one word, as in the source.
        if score > best_score:
            best = (span[0], end) if element.from_start else (start, span[1])
            best_score = score
    return max(best_score, 0.0), element, _trim(element, best, words)


def _trim(element: _Element, span: Span, words: _Words) -> Span:
    """Exclude punctuation that was outside the element in the source."""
    start, end = span
    text = words.target_text
    source_text = words.text[element.start : element.end].strip()
    if not source_text or not any(map(str.isalnum, text[start:end])):
        return span
    while source_text[0].isalnum() and not element.from_start and not text[start].isalnum():
        start += 1
    while source_text[-1].isalnum() and not element.to_end and not text[end - 1].isalnum():
        end -= 1
    return start, end


def _free_position(
    element: _Element, free: Sequence[Span], words: _Words, parent: _Element
) -> Span:
    """Find a position for an element that has no target words."""
    where = _share((element.start + element.end) / 2, parent)
    if element.kept is not None:
        # No target word translates it, so it must not replace a word.
        point = _point(element.start, words, parent)
        inside = [span for span in free if span[0] <= point <= span[1]]
        near = min(free, key=lambda span: min(abs(span[0] - where), abs(span[1] - where)))
        return (point, point) if inside else (near[0], near[0])
    open_words = [span for room in free for _, span in words.inside(room)]
    if not open_words:
        return free[0][0], free[0][0]
    return _trim(element, min(open_words, key=lambda s: abs((s[0] + s[1]) / 2 - where)), words)


def _share(position: int | float, parent: _Element) -> float:
    """Map a position in an element to the same relative position in its target span."""
    start, end = parent.place
    return start + (position - parent.start) / max(1, parent.end - parent.start) * (end - start)


def _point(position: int, words: _Words, parent: _Element) -> int:
    """
    Find the position of an empty element in the translation.

    It precedes the translation of the next source word, or else follows that of the previous word.
    If it is directly after a word, such as a note reference, the previous word comes first.
    """
    start, end = parent.place
    if position <= parent.start or position >= parent.end:
        return start if position <= parent.start else end
    following = bisect_right(words.source, position, key=itemgetter(1))
    if following == len(words.source):
        return end
    first, last = words.source[following]
    # The element may be between a word and the punctuation after it.
    in_word = first < position and not any(map(str.isalnum, words.text[position:last]))
    before = following if in_word else following - 1
    previous = words.translations(before, parent.place) if before >= 0 else []
    linked = [] if in_word else words.translations(following, parent.place)
    follows = position < first and before >= 0 and position == words.source[before][1]
    if linked and not (follows and previous):
        return linked[0][0]
    if previous:
        word = words.target_text[slice(*previous[-1])]
        if in_word or words.text[position - 1].isalnum():
            word = re.sub(r"\W+\Z", "", word) or word
        return previous[-1][0] + len(word)
    share = _share(position, parent)
    starts = (span[0] for _, span in words.inside(parent.place))
    return min(starts, key=lambda at: abs(at - share), default=end)


def _with_spaces(raw: str, target: str, where: int) -> str:
    """Separate an untranslated element from the words on both sides of a position."""
    lead = " " if where and not target[where - 1].isspace() else ""
    trail = " " if where < len(target) and not target[where].isspace() else ""
    return lead + raw + trail


def _write_element(element: _Element, target: str, escape: Callable[[str], str]) -> str:
    """Format an element and its content as text."""
    here, end = element.place
    if element.kept is not None:
        return _with_spaces(element.kept, target, here) if here == end else element.kept
    out = [element.before]
    for child in sorted(element.inside, key=lambda child: child.place):
        out += [escape(target[here : child.place[0]]), _write_element(child, target, escape)]
        here = max(here, child.place[1])
    return "".join([*out, escape(target[here:end]), element.after])
