"""
HTML blocks: inline text, its tags, and the untranslated parts.

::

    <div><p>The <b>red</b> dog.</p><pre>code</pre></div>
      verbatim   <div><p>
      paragraph  The ␣ <b> red </b> ␣ dog.
      verbatim   </p><pre>code</pre></div>

A paragraph is running text as a browser shows it: it ends at a block-level tag and continues past
inline tags. Each of its characters, entities, spaces and tags is an `Atom`, so each sentence of its
text can be traced back to the HTML.
"""

import html
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import NamedTuple

from heedful.serve.documents.html_lexer import RAW, VOID, HtmlToken, HtmlTokenKind, names, tokenize

_BLOCKS = names(
    """
    address article aside base blockquote body br button caption center col colgroup datalist dd
    details dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3
    h4 h5 h6 head header hgroup hr html iframe legend li link listing main menu meta nav noembed
    noframes noscript object ol optgroup option p param plaintext pre search section select
    source summary table tbody td template textarea tfoot th thead title tr track ul video audio
    xmp
    """
)
# Elements whose content is not translated.
_KEPT = RAW | frozenset({"plaintext", "pre", "listing", "textarea", "rt", "rp", "code", "kbd"})
_KEPT |= frozenset({"samp", "var"})
# Start tags that close an open element implicitly. Each has the names of the elements that it
# closes, and of the enclosing elements beyond which it closes nothing.
_ENDS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "li": (frozenset({"li"}), frozenset({"ul", "ol", "menu"})),
    "dt": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "dd": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "option": (frozenset({"option"}), frozenset({"select", "datalist", "optgroup"})),
    "tr": (frozenset({"tr"}), frozenset({"table"})),
    "td": (frozenset({"td", "th"}), frozenset({"table", "tr"})),
    "th": (frozenset({"td", "th"}), frozenset({"table", "tr"})),
}
_ENDS_PARAGRAPH = (frozenset({"p"}), frozenset({"button", "td", "th", "caption", "object"}))
_NOT_PARAGRAPH = frozenset({"br", "button", "option", "optgroup", "td", "th", "tr", "tbody"})
_UNSHOWN = RAW | frozenset({"rt", "rp"})
# An untranslated element of at most this many characters stays in the sentence as context for the
# model; a longer element would take too much of the sentence.
_MAX_SHOWN = 40

_SPACE = " \t\n\f\r"
_ATOM = re.compile(
    rf"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[a-zA-Z][a-zA-Z0-9]*;?)|[{_SPACE}]+|.", re.S
)
_DECIMAL = re.compile(r"&#0*([0-9]+)")
# The largest code point of Unicode has this many decimal digits.
_MOST_DIGITS = 7
_SOFT_HYPHEN = "\xad"
# A line break in text of word processors; `html.unescape` drops references to it.
_VERTICAL_TAB = "\v"
_VERTICAL_TAB_REFERENCE = re.compile(r"&#(?:0*11(?![0-9])|[xX]0*[bB](?![0-9a-fA-F]));?")
_CLOSING = frozenset(".,;:!?)]}…»”’")


class AtomKind(Enum):
    """The kind of an atom; only `TEXT` and `KEPT` have text."""

    TEXT = auto()
    """A character, an entity or some spaces."""
    OPEN = auto()
    """A start tag."""
    CLOSE = auto()
    """An end tag."""
    POINT = auto()
    """An atom without text: an image, comment, control character or hidden untranslated element."""
    KEPT = auto()
    """An untranslated element whose text the model sees."""


class Atom(NamedTuple):
    """The smallest part of an HTML block; the block's HTML is the `raw` of its atoms, joined."""

    part: AtomKind
    raw: str
    """Its HTML source."""
    text: str = ""
    """Its visible text, with each run of spaces collapsed to one space."""
    name: str = ""
    """Name of a tag."""


def paragraphs(source: str) -> Iterator[str | list[Atom]]:
    """
    Split HTML into blocks of running text and the markup between them.

    ``translate="no"`` and the class ``notranslate`` leave an element unchanged, up to its end tag
    or the tag that closes it implicitly.
    """
    paragraph = _Paragraph()
    for item in _without_kept(tokenize(source)):
        block = item.block if isinstance(item, _KeptElement) else item.name in _BLOCKS
        if block:
            if paragraph.atoms:
                yield paragraph.atoms
            paragraph = _Paragraph()
            yield item.raw
        else:
            paragraph.add(item)
    if paragraph.atoms:
        yield paragraph.atoms


def plain(raw: str) -> str:
    """Decode entities and collapse spaces as a browser does."""
    # A no-break space becomes a normal space, the only space that models know.
    return " ".join(_decode(raw).split())


def _decode(raw: str) -> str:
    """
    Decode entities.

    References to control characters and noncharacters, except the vertical tab, are removed.
    """

    def shorten(number: re.Match[str]) -> str:
        """Replace a number that has too many digits for a character, as browsers do."""
        digits = number.group(1)
        return f"&#{digits}" if len(digits) <= _MOST_DIGITS else "&#xFFFD"

    raw = _VERTICAL_TAB_REFERENCE.sub(_VERTICAL_TAB, raw)
    return html.unescape(_DECIMAL.sub(shorten, raw))


class _KeptElement(NamedTuple):
    """An element that is left untranslated."""

    raw: str
    text: str | None
    block: bool


class _OpenElement(NamedTuple):
    """An open element."""

    name: str
    kept: bool


class _Elements:
    """The stack of open elements, which determines where untranslated elements end."""

    def __init__(self) -> None:
        self.open: list[_OpenElement] = []
        self.places: defaultdict[str, list[int]] = defaultdict(list)
        """Positions of the open elements of each name, so that a search in deep nesting is fast."""
        self.kept = 0

    def begin(self, token: HtmlToken) -> None:
        """Open an element."""
        is_kept = token.name in _KEPT or _is_not_translated(token)
        self.places[token.name].append(len(self.open))
        self.open.append(_OpenElement(token.name, is_kept))
        self.kept += is_kept

    def end_before(self, name: str) -> None:
        """End elements that a start tag closes implicitly."""
        ended = [_ENDS[name]] if name in _ENDS else []
        if name in _BLOCKS and name not in _NOT_PARAGRAPH:
            ended.append(_ENDS_PARAGRAPH)
        for ended_names, stops in ended:
            place = self._innermost(ended_names)
            if place > self._innermost(stops):
                self._drop(place)

    def end(self, name: str) -> None:
        """End the innermost element with this name, and every open element inside it."""
        if places := self.places[name]:
            self._drop(places[-1])

    def _innermost(self, names: frozenset[str]) -> int:
        """Find the innermost open element with one of these names; -1 if there is none."""
        return max((self.places[name][-1] for name in names if self.places[name]), default=-1)

    def _drop(self, index: int) -> None:
        """End every open element from an index on."""
        while len(self.open) > index:
            element = self.open.pop()
            self.places[element.name].pop()
            self.kept -= element.kept


def _without_kept(tokens: Iterable[HtmlToken]) -> Iterator[HtmlToken | _KeptElement]:
    """Join the tokens of each untranslated element."""
    elements = _Elements()
    untranslated: list[HtmlToken] = []
    for token in tokens:
        ends_here = False
        if not token.foreign:
            if token.kind in (HtmlTokenKind.OPEN, HtmlTokenKind.VOID):
                before = elements.kept
                elements.end_before(token.name)
                if before and not elements.kept and untranslated:
                    yield _join_element(untranslated)
                    untranslated = []
            if token.kind is HtmlTokenKind.OPEN:
                elements.begin(token)
            elif token.kind is HtmlTokenKind.CLOSE:
                before = elements.kept
                elements.end(token.name)
                ends_here = bool(before and not elements.kept)
        if untranslated and not elements.kept and untranslated[-1].foreign and not token.foreign:
            yield _join_element(untranslated)
            untranslated = []
        if elements.kept or ends_here or token.foreign:
            untranslated.append(token)
        else:
            yield token
        if ends_here:
            yield _join_element(untranslated)
            untranslated = []
    if untranslated:
        yield _join_element(untranslated)


def _join_element(tokens: list[HtmlToken]) -> _KeptElement:
    """Join the tokens of an element into one."""
    raw = "".join(token.raw for token in tokens)
    first, *middle = tokens
    text = None
    if (
        not first.foreign
        and middle
        and all(token.kind is HtmlTokenKind.TEXT for token in middle[:-1])
    ):
        text = plain("".join(token.raw for token in middle[:-1]))
        text = text if 0 < len(text) <= _MAX_SHOWN and first.name not in _UNSHOWN else None
    return _KeptElement(raw, text, any(token.name in _BLOCKS for token in tokens))


def _is_not_translated(token: HtmlToken) -> bool:
    """Return whether the page marks an element as untranslated."""
    attributes = dict(reversed(token.attributes))
    return (
        attributes.get("translate", "").strip(_SPACE).lower() == "no"
        or "notranslate" in attributes.get("class", "").split()
    )


class _Paragraph:
    """A builder of a block's atoms, with runs of spaces collapsed to one."""

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        # Index of the last atom with visible text; -1 if there is none.
        self.last = -1

    def add(self, item: "HtmlToken | _KeptElement") -> None:
        """Add text, a tag, or an untranslated element."""
        if isinstance(item, _KeptElement):
            self._add_kept(item)
        elif item.kind is HtmlTokenKind.TEXT:
            for match in _ATOM.finditer(item.raw):
                self._add_text(match.group())
        elif item.kind is HtmlTokenKind.OPEN:
            self.atoms.append(Atom(AtomKind.OPEN, item.raw, name=item.name))
        elif item.kind is HtmlTokenKind.CLOSE and item.name not in VOID:
            self.atoms.append(Atom(AtomKind.CLOSE, item.raw, name=item.name))
        else:
            self.atoms.append(Atom(AtomKind.POINT, item.raw))

    def _add_text(self, raw: str) -> None:
        """Add a character, an entity or spaces."""
        text = _decode(raw) if raw[0] == "&" else raw
        if raw[0] == "&" and text in ("", _VERTICAL_TAB):
            # A reference to a control character is kept like an empty element.
            self.atoms.append(Atom(AtomKind.POINT, raw))
            raw = ""
        if not text:
            return
        if text.isspace():
            text = "" if self.last < 0 or self.atoms[self.last].text == " " else " "
        elif text == _SOFT_HYPHEN:
            text = ""
        elif text[0] in _CLOSING:
            self._close_up()
        self._add_shown(Atom(AtomKind.TEXT, raw, text))

    def _add_kept(self, element: "_KeptElement") -> None:
        """Add an untranslated element."""
        if element.text is None:
            self.atoms.append(Atom(AtomKind.POINT, element.raw))
        else:
            self._add_shown(Atom(AtomKind.KEPT, element.raw, element.text))

    def _add_shown(self, atom: Atom) -> None:
        """Add an atom, and record its index if it is visible."""
        if atom.text:
            self.last = len(self.atoms)
        self.atoms.append(atom)

    def _close_up(self) -> None:
        """Remove the space before punctuation if only empty elements are between them."""
        between = self.atoms[self.last + 1 :]
        if self.last >= 0 and between and all(atom.part is AtomKind.POINT for atom in between):
            last = self.atoms[self.last]
            if last.text == " " and last.part is AtomKind.TEXT:
                self.atoms[self.last] = last._replace(text="")
                # Find the previous visible text, so that no two spaces follow each other.
                self.last -= 1
                while not self.atoms[self.last].text:
                    self.last -= 1
