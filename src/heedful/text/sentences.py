r"""
Sentence splitting that keeps the text between sentences.

::

    "  Hello. How are you?\n\n- Fine.\n"
      pieces   Hello.   How are you?   Fine.
      gaps     "  "  " "  "\n\n- "  "\n"

A model translates one sentence at a time; it never sees a line break. Pieces and gaps together make
up the whole text, so unchanged pieces restore it exactly. A placeholder or a term is cut only if it
is too long for the model (`CutRule`).
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, zip_longest

try:
    from sentencex import segment
except ImportError:
    segment = None

Links = Iterable[tuple[int, int]]
"""Pairs of a source word index and a target word index, from 0; spaces separate words."""
# Start and end.
Span = tuple[int, int]


@dataclass(frozen=True)
class CutRule:
    """A rule for where a text may be cut."""

    fits: Callable[[str], bool]
    """Whether a model can read a sentence as a whole."""
    unbroken: Callable[[str], Sequence[Span]]
    """Finds the parts of a text that must not be cut, such as placeholders and terms."""

    def __call__(self, sentence: str) -> bool:
        """Whether a model can read a sentence as a whole."""
        return self.fits(sentence)


Fits = Callable[[str], bool]
"""Whether a model can read a sentence as a whole; a `CutRule` also says where to cut it."""

# The text between the line breaks of `str.splitlines`.
_LINE = re.compile("[^\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029]+")
# Columns are separated by a tab or at least three spaces; two spaces may follow a sentence.
_CELL = re.compile(r"(?:(?!\t| {3}).)+", re.DOTALL)
_BULLET = re.compile(r"\s*(?:(?:[-+*•‣⁃◦▪▫●○■□–—·>#]+|\(?\d{1,3}\)|[a-zA-Z]\)|\[[ xX]\])\s+)+")
_NUMBER = re.compile(r"\s*(\d{1,3})\.\s+")
# Addresses are not translated: a model would change them.
_ADDRESS = re.compile(r"\w[\w+.-]*://\S+|(?:www\.)\S+|\S+@\S+\.\w+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_INITIAL = re.compile(r"(?<!\w)[^\W\d_]\.\s*\Z")
# Where a sentence that is too long is split, best first: after an end mark, after a comma, or at a
# space.
_CUTS = [re.compile(cut) for cut in (r"(?<=[.!?;:…。！？；：।])\s*", r"(?<=[,،、，])\s*", r"\s+")]
_MOST_CHARACTERS = 1000


@dataclass(frozen=True)
class TextLayout:
    """The sentences of a text and the gaps between them."""

    pieces: tuple[str, ...]
    """Sentences to translate, in order, without surrounding spaces."""
    gaps: tuple[str, ...]
    """The texts before, between and after the pieces; one more than there are pieces."""

    @property
    def linked(self) -> tuple[bool, ...]:
        """For each piece, whether `fill` uses its alignment; here always False."""
        return (False,) * len(self.pieces)

    def fill(self, translations: Sequence[str], links: Sequence[Links | None] = ()) -> str:
        """
        Replace the sentences with translations.

        ``layout.fill(layout.pieces)`` is the original text.
        """
        if len(translations) != len(self.pieces):
            raise ValueError(
                f"{len(self.pieces)} pieces cannot have {len(translations)} translations"
            )
        return "".join(chain(*zip_longest(self.gaps, translations, fillvalue="")))


def split(text: str, language: str, fits: Fits | None = None) -> TextLayout:
    """Split a text into sentences."""
    # A sentence never spans a line break or a tab. Pieces without letters (numbers, rows of dashes)
    # and addresses are not translated.
    spans: list[Span] = []
    numbered = _numbered_lines(text)
    for line in _LINE.finditer(text):
        start = _skip_bullet(text, line.start(), line.end(), numbered)
        for cell in _CELL.finditer(text, start, line.end()):
            spans += (
                (cell.start() + begin, cell.start() + end)
                for begin, end in sentence_spans(cell.group(), language, fits)
            )
    return _laid_out(text, spans)


def keep_whole(text: str, fits: Fits) -> TextLayout:
    """Treat a text as one sentence, cut only if it is too long; line breaks become spaces."""
    line = " ".join(text.strip().splitlines())
    start = len(text) - len(text.lstrip())
    cut = [(0, len(line))] if line else []
    if not fits(line):
        parts = _unbroken(line, fits)
        cut = list(_cut(line, 0, len(line), lambda begin, end: fits(line[begin:end]), parts))
    spans = [(start + begin, start + end) for begin, end in cut]
    return _laid_out(text[:start] + line + text[max(start, len(text.rstrip())) :], spans)


def sentence_spans(
    line: str, language: str, fits: Fits | None = None, readable: str = ""
) -> list[Span]:
    """
    Find the spans of a line that are to be translated.

    `readable`: a text of the same length that the model reads instead of the line.
    """
    readable = readable or line
    parts: Sequence[Span] = ()

    def is_readable(start: int, end: int) -> bool:
        is_short = end - start <= _MOST_CHARACTERS or _is_inside(start, end, parts)
        return is_short and (fits is None or fits(readable[start:end]))

    segments = list(_segments(line, language))
    if len(segments) > 1 or not is_readable(0, len(line)):
        parts = _unbroken(readable, fits)
        segments = list(_join(segments, parts))
    spans: list[Span] = []
    for start, end in segments:
        for begin, stop in _cut(line, *_trim(line, start, end), is_readable, parts):
            piece = line[begin:stop]
            if any(map(str.isalpha, piece)) and not _ADDRESS.fullmatch(piece):
                spans.append((begin, stop))
    return spans


def _segments(line: str, language: str) -> Iterator[Span]:
    """Run the splitter and check its pieces; without a splitter the line is one piece."""
    if segment is None:  # sentencex is optional; `_cut` still divides a line that is too long
        yield 0, len(line)
        return
    sound = _SURROGATE.sub("\ufffd", line)
    start = end = 0
    for sentence in segment(language, sound):
        if not sound.startswith(sentence, end):
            break
        end += len(sentence)
        # The splitter knows many abbreviations, but would split “M. Dupont” after the initial.
        if not _INITIAL.search(sentence):
            yield start, end
            start = end
    if start < len(line):
        yield start, len(line)


def _unbroken(text: str, fits: Fits | None) -> list[Span]:
    """Find the parts of a text that must not be cut; overlapping parts are joined."""
    parts: list[Span] = []
    for start, end in sorted(fits.unbroken(text)) if isinstance(fits, CutRule) else ():
        if parts and start < parts[-1][1]:
            parts[-1] = parts[-1][0], max(end, parts[-1][1])
        else:
            parts.append((start, end))
    return parts


def _join(segments: Iterable[Span], parts: Sequence[Span]) -> Iterator[Span]:
    """Join sentences if a part that must not be cut crosses their boundary."""
    waiting: Span | None = None
    for start, end in segments:
        if waiting is not None and _broken_part(waiting[1], start, parts):
            waiting = waiting[0], end
            continue
        if waiting is not None:
            yield waiting
        waiting = start, end
    if waiting is not None:
        yield waiting


def _broken_part(start: int, end: int, parts: Sequence[Span]) -> Span | None:
    """Find the part that a cut at these characters would divide; None if there is none."""
    place = bisect_right(parts, start, key=lambda part: part[1])
    return parts[place] if place < len(parts) and parts[place][0] < end else None


def _is_inside(start: int, end: int, parts: Sequence[Span]) -> bool:
    """Whether a span lies within a part that must not be cut."""
    place = bisect_right(parts, start, key=lambda part: part[1])
    return place < len(parts) and parts[place][0] <= start and end <= parts[place][1]


def _trim(text: str, start: int, end: int) -> Span:
    """Remove the spaces at both ends of a span."""
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), start + len(part.rstrip())


def _laid_out(text: str, spans: Iterable[Span]) -> TextLayout:
    """Build a layout from a text and the spans of its pieces."""
    edges = [0, *chain(*spans), len(text)]
    parts = [text[start:end] for start, end in pairwise(edges)]
    return TextLayout(tuple(parts[1::2]), tuple(parts[::2]))


def _cut(
    text: str,
    start: int,
    end: int,
    is_readable: Callable[[int, int], bool],
    parts: Sequence[Span],
) -> Iterator[Span]:
    """Split an overlong sentence near its middle, repeatedly, until a model can read each part."""
    waiting = [(start, end)]
    while waiting:
        start, end = waiting.pop()
        if end - start <= 1 or is_readable(start, end):
            if start < end:
                yield start, end
            continue
        middle = (start + end) // 2
        cut = _middle_cut(middle, (start, end), parts)
        for mark in _CUTS:
            inside = [
                match.span()
                for match in mark.finditer(text, start + 1, end - 1)
                if start < match.start()
                and match.end() < end
                # A part may begin or end at the cut, but not reach into it.
                and not _broken_part(*match.span(), parts)
            ]
            if inside:
                cut = min(inside, key=lambda span: abs(span[0] - middle))
                break
        waiting += [_trim(text, cut[1], end), _trim(text, start, cut[0])]


def _middle_cut(middle: int, sentence: Span, parts: Sequence[Span]) -> Span:
    """Return an empty span at the middle, or at the nearer end of a part that must stay whole."""
    start, end = sentence
    part = _broken_part(middle, middle, parts)
    # A part that is too long for the model is cut like any other text.
    edges = [edge for edge in part or () if start < edge < end]
    place = min(edges, key=lambda edge: abs(edge - middle), default=middle)
    return place, place


def _numbered_lines(text: str) -> set[int]:
    """Find the starts of lines of numbered lists; a single “3. October” is not such a line."""
    lines = [
        (line.start(), int(match.group(1)))
        for line in _LINE.finditer(text)
        if (match := _NUMBER.match(text, line.start(), line.end()))
    ]
    numbers = {number for _, number in lines}
    return {start for start, number in lines if {number - 1, number + 1} & numbers}


def _skip_bullet(text: str, start: int, end: int, numbered: set[int]) -> int:
    """Find where the text of a line begins after its bullet."""
    mark = _NUMBER if start in numbered else _BULLET
    match = mark.match(text, start, end)
    return match.end() if match else start
