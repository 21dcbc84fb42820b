"""
A lossless HTML lexer: text, tags and other markup.

::

    <p class=a>1 < 2<!-- really -->   <p class=a> | 1 < 2 | <!-- really -->

Tags are found by the rules of browsers (the HTML standard, section 13.2.5), so a translation can
never be read as part of a tag, a comment or a script. The rules also define how to read broken
HTML. No tree is built, because a tree would change broken HTML.
"""

import re
from collections import Counter
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

_SPACE = " \t\n\f\r"
_NAME = re.compile(rf"[^{_SPACE}/>]+")
_BEFORE_ATTRIBUTE = re.compile(rf"[{_SPACE}/]*")
_ATTRIBUTE_NAME = re.compile(rf"[^{_SPACE}/>][^{_SPACE}/>=]*")
_EQUALS = re.compile(rf"[{_SPACE}]*=[{_SPACE}]*")
_UNQUOTED = re.compile(rf"[^{_SPACE}>]*")
_COMMENT_END = re.compile(r"--!?>")
_SCRIPT_MARK = re.compile(rf"<!--|-->|<(/?)script(?=[{_SPACE}/>])", re.IGNORECASE)


def names(text: str) -> frozenset[str]:
    """Split a list of names at spaces."""
    return frozenset(text.split())


# Elements in which a browser parses neither tags nor entities before the end tag.
RAW = frozenset({"script", "style", "xmp", "iframe", "noembed", "noframes", "noscript"})
# Elements in which a browser parses only entities.
ESCAPABLE = frozenset({"title", "textarea"})
VOID = names(
    """
    area base basefont bgsound br col embed frame hr img input keygen link meta param source
    track wbr
    """
)
_FOREIGN = frozenset({"svg", "math"})
# Elements of SVG and MathML whose content is HTML again.
_INTEGRATION = frozenset(
    {"foreignobject", "desc", "title", "annotation-xml", "mi", "mo", "mn", "ms", "mtext"}
)
# HTML tags that end SVG or MathML content.
_BREAKOUT = names(
    """
    b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li
    listing menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var
    """
)


class HtmlTokenKind(Enum):
    """
    The kind of an HTML token.

    A tag without its closing ``>`` is `OTHER` and includes all text after it, because browsers drop
    both.
    """

    TEXT = auto()
    """Characters and entities."""
    OPEN = auto()
    """A start tag of an element that has content."""
    CLOSE = auto()
    """An end tag."""
    VOID = auto()
    """A start tag of an element without content."""
    OTHER = auto()
    """Invisible markup: a comment, a document type, or the content of a script."""


class HtmlToken(NamedTuple):
    """A token of HTML; if attributes have the same name, the first one counts."""

    kind: HtmlTokenKind
    raw: str
    """Its HTML source."""
    name: str = ""
    """Name of a tag, in lower case."""
    attributes: tuple[tuple[str, str], ...] = ()
    """Attributes of a tag: names in lower case, raw values without quotes."""
    foreign: bool = False
    """Whether it belongs to SVG or MathML."""


def tokenize(html: str) -> Iterator[HtmlToken]:
    """Split HTML, even broken HTML, into text, tags and other markup in linear time."""
    place, foreign = 0, _Foreign()
    while place < len(html):
        token = _markup(html, place, foreign.rules) if html[place] == "<" else None
        if token is None:
            end = html.find("<", place + 1)
            token = HtmlToken(HtmlTokenKind.TEXT, html[place : end if end >= 0 else len(html)])
        drawn = foreign.rules
        token = foreign.follow(token)
        yield token
        place += len(token.raw)
        if token.kind is HtmlTokenKind.OPEN and not drawn:
            content = _unread_content(html, place, token.name)
            if content:
                kind = HtmlTokenKind.TEXT if token.name in ESCAPABLE else HtmlTokenKind.OTHER
                yield HtmlToken(kind, content, foreign=token.foreign)
                place += len(content)


class _Foreign:
    """A tracker of SVG and MathML content, whose rules differ from those of HTML."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.counts: Counter[str] = Counter()

    @property
    def rules(self) -> bool:
        """Whether the rules of SVG and MathML apply here."""
        return bool(self.open) and self.open[-1] not in _INTEGRATION

    def follow(self, token: HtmlToken) -> HtmlToken:
        """Update the state with a token, and mark the token if it is foreign."""
        if not self.open and token.name not in _FOREIGN:
            return token
        if (
            self.rules
            and token.kind in (HtmlTokenKind.OPEN, HtmlTokenKind.VOID)
            and token.name in _BREAKOUT
        ):
            while self.rules:
                self._close()
            return token._replace(foreign=bool(self.open))
        inside = self.rules or token.name in _FOREIGN
        if inside and token.kind in (HtmlTokenKind.OPEN, HtmlTokenKind.VOID):
            if token.raw.endswith("/>"):
                token = token._replace(kind=HtmlTokenKind.VOID)
            else:
                self.open.append(token.name)
                self.counts[token.name] += 1
                token = token._replace(kind=HtmlTokenKind.OPEN)
        elif token.kind is HtmlTokenKind.CLOSE and self.counts[token.name]:
            while self._close() != token.name:
                pass
        return token._replace(foreign=True)

    def _close(self) -> str:
        """Close the innermost element and return its name."""
        name = self.open.pop()
        self.counts[name] -= 1
        return name


def _markup(html: str, start: int, foreign: bool) -> HtmlToken | None:
    """Parse the markup that begins with a ``<``; None if the ``<`` is text."""
    following = html[start + 1 : start + 2]
    if following == "!":
        return HtmlToken(HtmlTokenKind.OTHER, html[start : _declaration_end(html, start, foreign)])
    if following == "?" or (following == "/" and not _is_letter(html, start + 2)):
        if start + 2 >= len(html):
            return None
        return HtmlToken(HtmlTokenKind.OTHER, html[start : _after(html, ">", start)])
    if following == "/":
        return _tag(html, start, start + 2)
    return _tag(html, start, start + 1) if _is_letter(html, start + 1) else None


def _is_letter(html: str, position: int) -> bool:
    """Return whether there is an ASCII letter at a position."""
    letter = html[position : position + 1]
    return letter.isascii() and letter.isalpha()


def _after(html: str, mark: str, start: int) -> int:
    """Find the position after a delimiter, or the end of the text."""
    position = html.find(mark, start)
    return position + len(mark) if position >= 0 else len(html)


def _declaration_end(html: str, start: int, foreign: bool) -> int:
    """Find the end of markup that begins with ``<!``."""
    if html.startswith("<!--", start):
        for short in (">", "->"):
            if html.startswith(short, start + 4):
                return start + 4 + len(short)
        match = _COMMENT_END.search(html, start + 4)
        return match.end() if match else len(html)
    if foreign and html.startswith("<![CDATA[", start):
        return _after(html, "]]>", start)
    return _after(html, ">", start)


def _tag(html: str, start: int, name_start: int) -> HtmlToken:
    """Parse a tag; an unclosed tag extends to the end of the text."""
    named = _NAME.match(html, name_start)
    if named is None:
        return HtmlToken(HtmlTokenKind.OTHER, html[start:])
    # In names, only ASCII letters are lower-cased.
    name, here = _lower(named.group()), named.end()
    attributes: list[tuple[str, str]] = []
    while True:
        before = _BEFORE_ATTRIBUTE.match(html, here)
        here = before.end() if before else here
        if here >= len(html):
            return HtmlToken(HtmlTokenKind.OTHER, html[start:])
        if html[here] == ">":
            break
        match = _ATTRIBUTE_NAME.match(html, here)
        here, attribute, value = (match.end(), match.group(), "") if match else (here + 1, "", "")
        if equals := _EQUALS.match(html, here):
            here = equals.end()
            quote = html[here : here + 1]
            if quote and quote in "\"'":
                end = html.find(quote, here + 1)
                if end < 0:
                    return HtmlToken(HtmlTokenKind.OTHER, html[start:])
                value, here = html[here + 1 : end], end + 1
            elif unquoted := _UNQUOTED.match(html, here):
                value, here = unquoted.group(), unquoted.end()
        attributes.append((_lower(attribute), value))
    raw = html[start : here + 1]
    if html[start + 1] == "/":
        return HtmlToken(HtmlTokenKind.CLOSE, raw, name)
    kind = HtmlTokenKind.VOID if name in VOID else HtmlTokenKind.OPEN
    return HtmlToken(kind, raw, name, tuple(attributes))


def _lower(name: str) -> str:
    """Lower-case ASCII letters."""
    return name.lower() if name.isascii() else re.sub("[A-Z]+", lambda m: m[0].lower(), name)


def _unread_content(html: str, start: int, name: str) -> str:
    """Return the raw content of an element such as ``<script>``, in which tags are not parsed."""
    if name == "plaintext":
        return html[start:]
    if name == "script":
        return html[start : _script_end(html, start)]
    if name in RAW or name in ESCAPABLE:
        end = re.compile(rf"</{name}(?=[{_SPACE}/>])", re.IGNORECASE).search(html, start)
        return html[start : end.start() if end else len(html)]
    return ""


def _script_end(html: str, start: int) -> int:
    """Find the end tag of a script; skip the end tags of scripts in its comments."""
    commented = nested = False
    here = start
    while mark := _SCRIPT_MARK.search(html, here):
        delimiter, here = mark.group(), mark.end()
        if delimiter == "<!--":
            # Go back over the dashes, because in <!--> they also end the comment.
            here, commented = here - 2, True
        elif delimiter == "-->":
            commented = nested = False
        elif mark.group(1) and not nested:
            return mark.start()
        elif commented:
            nested = not mark.group(1)
    return len(html)
