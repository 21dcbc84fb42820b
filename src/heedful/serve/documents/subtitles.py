r"""
Subtitles: SubRip (``.srt``) and WebVTT (``.vtt``).

::

    1                                   verbatim: the number, or WebVTT's name of a cue
    00:00:02,830 --> 00:00:05,560       verbatim
    <i>the big red                      one sentence over two lines
    dog sleeps.</i>
                                        verbatim
    2

Numbers, time stamps, blank lines, notes and styles stay unchanged, byte for byte. The lines of a
cue are read as one text, and its translation is wrapped to the same number of lines. A line that
begins with a dash starts the text of another speaker. Tags such as ``<i>`` and ``{\an8}`` follow
their words.
"""

import html
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from heedful.serve.documents.html_blocks import Atom, AtomKind
from heedful.serve.documents.html_document import Markup, Sentence, fill_parts, find_sentences
from heedful.serve.documents.tag_projection import Links
from heedful.text.sentences import Fits

_TIME = r"(?:\d{1,4}:)?\d{1,2}:\d{2}[,.]\d{1,3}"
_STAMP = re.compile(rf"[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}(?:[ \t].*)?", re.DOTALL)
_ANY_STAMP = re.compile(
    rf"(?:\A|[\r\n])\ufeff?[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}(?:[ \t][^\r\n]*)?(?:[\r\n]|\Z)"
)
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_END = re.compile(r"(?:\r\n|\n|\r)\Z")
_BLOCK = re.compile(r"\ufeff?(?:WEBVTT|NOTE|STYLE|REGION)(?:[ \t\r\n].*)?", re.DOTALL)
_SPEAKER = re.compile(r"[ \t]*[-–—‐][ \t]*")
_ATOM = re.compile(
    r"(?P<tag></?[A-Za-z][^<>\r\n]{0,200}>)|(?P<point><[\d:.]{5,14}>|\{[\\][^{}\r\n]{1,200}\}|[♪♫]+|(?<!\S)\#+(?!\S))"
    r"|(?P<space>\s+)|(?P<entity>&[a-zA-Z]{2,8};|&#\d{1,7};)|(?P<text>.)",
    re.DOTALL,
)
_NAME = re.compile(r"</?([A-Za-z]+)")
_EMPTY = frozenset(("br", "wbr", "hr", "img"))
_SHOWN_TAG = re.compile(r"<[^<>]*>|\{[\\][^{}]*\}")
# Scripts without spaces between words: a line may end between two letters.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0eff]")


def is_subtitles(text: str) -> bool:
    """Return whether a text has a line that begins with the time stamp of a cue."""
    return "-->" in text and _ANY_STAMP.search(text) is not None


@dataclass(frozen=True)
class _Cue:
    """The text of a cue or of one of its speakers, with the number of its line breaks."""

    parts: tuple[str | Sentence, ...]
    breaks: int
    line_end: str

    def wrap(self, text: str) -> str:
        """Wrap a translation to the cue's number of lines."""
        if not self.breaks or len(re.findall(r"\r\n|\n|\r", text)) == self.breaks:
            return text
        return _wrap(re.sub(r"[ \t]*(?:\r\n|\n|\r)[ \t]*", " ", text), self.breaks, self.line_end)


@dataclass(frozen=True)
class Subtitles:
    """The sentences of subtitles, and everything else."""

    pieces: tuple[str, ...]
    """Sentences to translate, in order, without line breaks and tags."""
    linked: tuple[bool, ...]
    """For each piece, whether it contains tags."""
    parts: tuple[str | _Cue, ...]
    """The texts of cues, and the unchanged text between them."""

    @classmethod
    def parse(cls, text: str, language: str, fits: Fits | None = None) -> "Subtitles":
        """Find the text of the cues; everything else stays unchanged."""
        is_vtt = text.removeprefix("\ufeff").startswith("WEBVTT")
        escape = _escape_vtt if is_vtt else _escape_srt
        parts: list[str | _Cue] = []
        for part in _blocks(text):
            parts += [part] if isinstance(part, str) else _cues(part, language, fits, escape)
        cues = Markup.of([part for cue in parts if isinstance(cue, _Cue) for part in cue.parts])
        return cls(cues.pieces, cues.linked, tuple(parts))

    def fill(self, translations: Sequence[str], links: Sequence[Links | None] = ()) -> str:
        """Replace the sentences with translations; ``fill(pieces)`` is the parsed text."""
        if len(translations) != len(self.pieces):
            raise ValueError(
                f"{len(self.pieces)} pieces cannot have {len(translations)} translations"
            )
        pairs = iter(zip(translations, links or [None] * len(translations), strict=True))
        return "".join(
            part if isinstance(part, str) else part.wrap(fill_parts(part.parts, pairs))
            for part in self.parts
        )


def cue_text(text: str) -> str:
    """Extract the text of the cues, for the detection of its language."""
    lines = [line for part in _blocks(text) if not isinstance(part, str) for line in part]
    return _SHOWN_TAG.sub("", "".join(lines))


def _blocks(text: str) -> Iterator[str | list[str]]:
    """Split subtitles into unchanged text and the lines of each cue."""
    lines = [line for line in _LINE.findall(text) if line]
    is_vtt = text.removeprefix("\ufeff").startswith("WEBVTT")
    cue: list[str] = []
    is_stamped = False  # whether the previous line is a time stamp
    is_skipped = False  # whether the line is in a note, a style or the header
    for number, line in enumerate(lines):
        bare = _END.sub("", line)
        following = lines[number + 1] if number + 1 < len(lines) else ""
        starts = is_vtt and not cue and not is_stamped and _BLOCK.fullmatch(bare) is not None
        is_below_stamp, is_stamped = is_stamped, _STAMP.fullmatch(bare) is not None
        # A time stamp always begins a cue, even directly after a note without a blank line.
        if is_stamped or not bare.strip():
            is_skipped = False
        elif starts:
            is_skipped = True
        is_text = bool(bare.strip()) and not is_skipped and not is_stamped
        # The line before a time stamp may be the number or, in WebVTT, the name of a cue.
        if is_text and _STAMP.fullmatch(_END.sub("", following)):
            is_text = (bool(cue) or is_below_stamp) and not bare.strip().isdecimal()
        if is_text:
            cue.append(line)
            continue
        if cue:
            yield cue
            cue = []
        yield line
    if cue:
        yield cue


def _cues(
    lines: Sequence[str], language: str, fits: Fits | None, escape: Callable[[str], str]
) -> Iterator[str | _Cue]:
    """Split a cue by its speakers, and the text of each speaker into sentences."""
    groups: list[list[str]] = []
    for line in lines:
        if not groups or _SPEAKER.match(line):
            groups.append([])
        groups[-1].append(line)
    for group in groups:
        text = "".join(group)
        dash = _SPEAKER.match(text)
        if dash:
            yield dash[0]
            text = text[dash.end() :]
        end = _END.search(text)
        body = text[: end.start()] if end else text
        line_end = end[0] if end else "\n"
        parts = find_sentences(list(_atoms(body)), language, fits, escape)
        yield _Cue(tuple(parts), len(group) - 1, line_end)
        if end:
            yield end[0]


def _atoms(text: str) -> Iterator[Atom]:
    """Split the text of a cue into characters and tags."""
    is_spaced = True
    for match in _ATOM.finditer(text):
        raw = match[0]
        if match["tag"]:
            name = _NAME.match(raw)
            tag = name[1].lower() if name else ""
            kind = AtomKind.CLOSE if raw[1] == "/" else AtomKind.OPEN
            yield Atom(AtomKind.POINT if tag in _EMPTY else kind, raw, name=tag)
        elif match["point"]:
            yield Atom(AtomKind.POINT, raw)
        elif match["space"]:
            yield Atom(AtomKind.TEXT, raw, "" if is_spaced else " ")
            is_spaced = True
        else:
            shown = html.unescape(raw) if match["entity"] else raw
            yield Atom(AtomKind.TEXT, raw, shown if shown.strip() else " ")
            is_spaced = not shown.strip()


def _wrap(text: str, breaks: int, line_end: str) -> str:
    """Break a text into lines of similar length, at spaces outside tags."""
    hidden = [span for match in _SHOWN_TAG.finditer(text) for span in range(*match.span())]
    inside = set(hidden)
    width, places = 0, list[tuple[int, int]]()
    for place, character in enumerate(text):
        if place in inside:
            continue
        width += 1
        if character == " " or (_UNSPACED.match(character) and place + 1 < len(text)):
            places.append((width, place))
    places = [item for item in places if 0 < item[1] < len(text) - 1]
    written, start, first = [], 0, 0
    for number in range(1, breaks + 1):
        wanted = number * width / (breaks + 1)
        first = bisect_left(places, start, first, key=lambda item: item[1])
        if first == len(places):
            break
        after = bisect_left(places, wanted, first, key=lambda item: item[0])
        nearest = places[max(first, after - 1) : after + 1]
        _, place = min(nearest, key=lambda item: abs(item[0] - wanted))
        written.append(text[start : place + 1].rstrip(" "))
        start = place + 1
    return line_end.join([*written, text[start:]])


def _escape_srt(text: str) -> str:
    """Replace arrows, so that no part of a translation is read as a time stamp."""
    return text.replace("-->", "->")


def _escape_vtt(text: str) -> str:
    """Escape characters that WebVTT reads as tags."""
    return html.escape(text, quote=False)
