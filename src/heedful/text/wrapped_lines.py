"""
Joining of lines that were wrapped at a fixed width, for example in an email or a PDF.

A paragraph ends at an empty line, a page break or a line with columns, and before a list item or a
quotation. A break within a paragraph becomes a space; between letters of scripts without spaces, it
is removed.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest

_BREAK = re.compile("(\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029])")
_PAGE_BREAKS = "\f\x1c\x1d\x1e\u2029"
_ITEM = re.compile(r"\s*(?:[-+*•‣⁃◦▪▫●○■□–—·>#]+|\(?\d{1,3}\)|[a-zA-Z]\)|\[[ xX]\])\s")
_NUMBER = re.compile(r"\s*(\d{1,3})\.\s")
_COLUMNS = re.compile(r"\S(?:\t| {3})\s*+\S")
# Chinese, Japanese, Thai, Lao, Burmese and Khmer letters, with their punctuation.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]"
)


class _JoinedLines:
    """The lines of a paragraph that have been joined so far."""

    def __init__(self, line: str) -> None:
        self._lines, self._last = [line], line
        self._is_blank = not line.strip()
        self._number = _NUMBER.match(line)

    @property
    def text(self) -> str:
        """The paragraph."""
        return "".join(self._lines)

    def goes_on(self, line: str) -> bool:
        """Whether a line continues the paragraph."""
        if self._is_blank or not line.strip() or _ITEM.match(line):
            return False
        # “3. October” does not begin an item, unless the paragraph is a numbered item, too.
        number = _NUMBER.match(line)
        if number and (self._number or number.group(1) == "1"):
            return False
        return not (_COLUMNS.search(self._last) or _COLUMNS.search(line))

    def add(self, line: str) -> None:
        """Append a line."""
        before, after = self._lines[-1].rstrip(), line.lstrip()
        is_joined = _UNSPACED.match(before[-1:]) and _UNSPACED.match(after)
        self._lines[-1:] = [before, "" if is_joined else " ", after]
        self._last = line


def join_wrapped(text: str) -> str:
    r"""
    Join the lines of each paragraph of a text; all other line breaks stay as they are.

    >>> join_wrapped("the big\nred dog\n\n- a\n- b\n")
    'the big red dog\n\n- a\n- b\n'
    """
    parts = _BREAK.split(text)
    paragraph = _JoinedLines(parts[0])
    joined: list[str] = []
    for line_break, line in zip_longest(parts[1::2], parts[2::2], fillvalue=""):
        if line_break not in _PAGE_BREAKS and paragraph.goes_on(line):
            paragraph.add(line)
        else:
            joined += [paragraph.text, line_break]
            paragraph = _JoinedLines(line)
    return "".join([*joined, paragraph.text])


def join_lines(lines: Iterable[str]) -> Iterator[str]:
    """
    Join the lines of each paragraph of a stream of lines.

    >>> list(join_lines(["the big", "red dog", "", "it sleeps"]))
    ['the big red dog', '', 'it sleeps']
    """
    paragraph: _JoinedLines | None = None
    for line in lines:
        if paragraph is not None and paragraph.goes_on(line):
            paragraph.add(line)
            continue
        if paragraph is not None:
            yield paragraph.text
        paragraph = _JoinedLines(line)
    if paragraph is not None:
        yield paragraph.text
