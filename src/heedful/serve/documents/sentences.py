r"""
Long text as sentences to translate, and what stands between them.

::

    "  Hello. How are you?\n\n- Fine.\n"
      pieces   Hello.   How are you?   Fine.
      gaps     "  "  " "  "\n\n- "  "\n"

A model translates one sentence at a time; it never sees a line break. Pieces and gaps hold every
character of the text, so that pieces put back as they are give the text as it was.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, zip_longest

from sentencex import segment

from heedful.serve.documents.tag_projection import Links

Fits = Callable[[str], bool]
"""Whether a model can read a sentence as a whole."""
# Where something begins and where it ends.
Span = tuple[int, int]

# All that `str.splitlines` takes for the end of a line.
_LINE = re.compile("[^\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029]+")
# Columns are set apart by a tab or by three spaces and more; two only follow a sentence.
_CELL = re.compile(r"(?:(?!\t| {3}).)+", re.DOTALL)
_BULLET = re.compile(r"\s*(?:(?:[-+*•‣⁃◦▪▫●○■□–—·>#]+|\(?\d{1,3}\)|[a-zA-Z]\)|\[[ xX]\])\s+)+")
_NUMBER = re.compile(r"\s*(\d{1,3})\.\s+")
# Addresses, which a model can only spoil.
_ADDRESS = re.compile(r"\w[\w+.-]*://\S+|(?:www\.)\S+|\S+@\S+\.\w+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_INITIAL = re.compile(r"(?<!\w)[^\W\d_]\.\s*\Z")
# Where a sentence that is too long is cut, best first: behind such a mark, before such a space.
_CUTS = [re.compile(cut) for cut in (r"(?<=[.!?;:…。！？；：।])\s*", r"(?<=[,،、，])\s*", r"\s+")]
_MOST_CHARACTERS = 1000


@dataclass(frozen=True)
class TextLayout:
    """
    Hold the sentences of a text and what stands between them.

    Attributes
    ----------
    pieces : tuple of str
        What is to be translated, in order; each begins and ends with a character that is no space.
    gaps : tuple of str
        What stands before, between and behind them: one more than pieces.

    Notes
    -----
    A text of spaces, line breaks and bullets alone has no pieces and one gap.
    """

    pieces: tuple[str, ...]
    gaps: tuple[str, ...]

    @property
    def linked(self) -> tuple[bool, ...]:
        """For each piece whether `fill` makes use of its alignment: never."""
        return (False,) * len(self.pieces)

    def fill(self, translations: Sequence[str], links: Sequence[Links | None] = ()) -> str:
        """
        Put translations where the sentences were.

        Parameters
        ----------
        translations : sequence of str
            One for each piece, in order.
        links : sequence, optional
            Not used; here so that text and markup are filled alike.

        Returns
        -------
        str
            The translated text.

        Notes
        -----
        ``layout.fill(layout.pieces)`` is the text that was split, to the character.
        """
        if len(translations) != len(self.pieces):
            raise ValueError(f"{len(self.pieces)} pieces need as many translations")
        return "".join(chain(*zip_longest(self.gaps, translations, fillvalue="")))


def split(text: str, language: str, fits: Fits | None = None) -> TextLayout:
    """
    Find the sentences of a text.

    Parameters
    ----------
    text : str
        Of any length, with any line breaks.
    language : str
        Code of its language, such as ``en``.
    fits : callable, optional
        Whether a model can read a sentence as a whole; one that it cannot read is cut, best behind
        a mark of punctuation.

    Returns
    -------
    TextLayout
        The sentences and what stands between them.

    Notes
    -----
    A sentence never goes on over a line break or a tab. What has no letter is not translated
    (numbers, rows of dashes), nor is an address.
    """
    spans: list[Span] = []
    numbered = _numbered(text)
    for line in _LINE.finditer(text):
        start = _behind_bullet(text, line.start(), line.end(), numbered)
        for cell in _CELL.finditer(text, start, line.end()):
            spans += (
                (cell.start() + begin, cell.start() + end)
                for begin, end in sentence_spans(cell.group(), language, fits)
            )
    return _laid_out(text, spans)


def keep_whole(text: str, fits: Fits) -> TextLayout:
    """
    Take a text for one sentence.

    Parameters
    ----------
    text : str
        Of any length, with any line breaks.
    fits : callable
        Whether a model can read a sentence as a whole; what it cannot read is cut all the same.

    Returns
    -------
    TextLayout
        One piece, or none if there are only spaces.

    Notes
    -----
    A line break inside is a space: a model never sees one.
    """
    line = " ".join(text.strip().splitlines())
    start = len(text) - len(text.lstrip())
    cut = _cut(line, 0, len(line), lambda begin, end: fits(line[begin:end]))
    spans = [(start + begin, start + end) for begin, end in cut]
    return _laid_out(text[:start] + line + text[max(start, len(text.rstrip())) :], spans)


def sentence_spans(
    line: str, language: str, fits: Fits | None = None, read: str = ""
) -> list[Span]:
    """
    Find the sentences of a line that are to be translated.

    Parameters
    ----------
    line : str
        A line or a paragraph, without line breaks.
    language : str
        Code of its language.
    fits : callable, optional
        As in `split`.
    read : str, optional
        What a model reads where that is not the line, character for character.

    Returns
    -------
    list of (int, int)
        Where each begins and ends, in order.

    Notes
    -----
    Between them stand spaces and what is not to be translated.
    """
    read = read or line

    def is_readable(start: int, end: int) -> bool:
        return end - start <= _MOST_CHARACTERS and (fits is None or fits(read[start:end]))

    found: list[Span] = []
    for start, end in _segments(line, language):
        for begin, stop in _cut(line, *_trimmed(line, start, end), is_readable):
            piece = line[begin:stop]
            if any(map(str.isalpha, piece)) and not _ADDRESS.fullmatch(piece):
                found.append((begin, stop))
    return found


def _segments(line: str, language: str) -> Iterator[Span]:
    """Ask the splitter; what it gives must be the line, piece by piece."""
    sound = _SURROGATE.sub("\ufffd", line)
    start = end = 0
    for sentence in segment(language, sound):
        if not sound.startswith(sentence, end):
            break
        end += len(sentence)
        # It knows many abbreviations, but M. Dupont would be two sentences.
        if not _INITIAL.search(sentence):
            yield start, end
            start = end
    if start < len(line):
        yield start, len(line)


def _trimmed(text: str, start: int, end: int) -> Span:
    """Leave spaces outside."""
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), start + len(part.rstrip())


def _laid_out(text: str, spans: Iterable[Span]) -> TextLayout:
    """Take pieces out of a text."""
    edges = [0, *chain(*spans), len(text)]
    parts = [text[start:end] for start, end in pairwise(edges)]
    return TextLayout(tuple(parts[1::2]), tuple(parts[::2]))


def _cut(
    text: str, start: int, end: int, is_readable: Callable[[int, int], bool]
) -> Iterator[Span]:
    """Cut what is too long in two, near the middle, until a model can read all parts."""
    waiting = [(start, end)]
    while waiting:
        start, end = waiting.pop()
        if end - start <= 1 or is_readable(start, end):
            if start < end:
                yield start, end
            continue
        middle = (start + end) // 2
        cut = (middle, middle)
        for mark in _CUTS:
            inside = [
                found.span()
                for found in mark.finditer(text, start + 1, end - 1)
                if start < found.start() and found.end() < end
            ]
            if inside:
                cut = min(inside, key=lambda span: abs(span[0] - middle))
                break
        waiting += [_trimmed(text, cut[1], end), _trimmed(text, start, cut[0])]


def _numbered(text: str) -> set[int]:
    """Find the lines of numbered lists: “3. October” alone is none."""
    lines = [
        (line.start(), int(found.group(1)))
        for line in _LINE.finditer(text)
        if (found := _NUMBER.match(text, line.start(), line.end()))
    ]
    numbers = {number for _, number in lines}
    return {start for start, number in lines if {number - 1, number + 1} & numbers}


def _behind_bullet(text: str, start: int, end: int, numbered: set[int]) -> int:
    """Find where the text of a line begins."""
    mark = _NUMBER if start in numbered else _BULLET
    found = mark.match(text, start, end)
    return found.end() if found else start
