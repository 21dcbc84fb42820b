r"""
Documents of Word (``.docx``) and OpenDocument (``.odt``).

The text of every paragraph becomes a string in which numbers represent the XML elements::

    <text:p>The <text:span text:style-name="bold">red</text:span> dog</text:p>
    The ⟨open 0⟩red⟨close 0⟩ dog            ⟨…⟩: two control characters around the number

Sentences of the string are translated like the sentences of a web page: tags follow their words.
The paragraph is then rebuilt from the string and its elements. Properties, pictures, fields, note
references, deleted text and everything outside paragraphs stay unchanged. Tabs, breaks and fields
separate the text, so their order never changes. A bookmark, a comment or a tracked insertion moves
with the words that it marks.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from heedful.errors import TextError
from heedful.serve.documents.archive import Archive
from heedful.serve.documents.html_blocks import Atom, AtomKind
from heedful.serve.documents.html_document import Markup, Sentence, find_sentences
from heedful.text.sentences import Fits

_Element = Any  # lxml has no types
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"

_DOCX_PART = re.compile(r"word/(document|header|footer|footnotes|endnotes|comments)\d*\.xml")
_CONTAINERS = frozenset(
    f"{_W}{name}"
    for name in (
        *("hyperlink", "smartTag", "customXml", "ins", "moveTo"),
        *("fldSimple", "bdo", "dir", "sdt"),
    )
)
# Elements of a container that are not text.
_SETTINGS = frozenset(
    f"{_W}{name}" for name in ("smartTagPr", "customXmlPr", "fldData", "sdtPr", "sdtEndPr")
)
_RANGES = ("bookmark", "commentRange", "moveFromRange", "moveToRange", "perm")
_RANGE_STARTS = frozenset(f"{_W}{name}Start" for name in _RANGES)
_RANGE_ENDS = frozenset(f"{_W}{name}End" for name in _RANGES)
# Word's marks of spelling errors and of the ends of pages in the source text.
_DROPPED = frozenset(f"{_W}{name}" for name in ("proofErr", "lastRenderedPageBreak"))
_BARRIERS = frozenset(
    f"{_W}{name}" for name in ("br", "cr", "tab", "ptab", "fldChar", "instrText", "delInstrText")
)
_SOFT_HYPHEN, _HARD_HYPHEN = "\xad", "\u2011"
# Hyphens that Word writes as elements.
_HYPHENS = {f"{_W}softHyphen": _SOFT_HYPHEN, f"{_W}noBreakHyphen": _HARD_HYPHEN}
_HYPHEN_TAGS = {character: tag for tag, character in _HYPHENS.items()}
_ODT_BARRIERS = frozenset(f"{_TEXT}{name}" for name in ("tab", "line-break", "s"))
_ODT_CONTAINERS = frozenset(f"{_TEXT}{name}" for name in ("span", "a", "meta", "meta-field"))
_ODT_RANGES = ("bookmark", "reference-mark", "toc-mark", "alphabetical-index-mark", "change")
# A comment; its end is optional.
_ANNOTATION = f"{_OFFICE}annotation"
_ODT_RANGE_STARTS = frozenset([_ANNOTATION, *(f"{_TEXT}{name}-start" for name in _ODT_RANGES)])
_ODT_RANGE_ENDS = frozenset([f"{_ANNOTATION}-end", *(f"{_TEXT}{name}-end" for name in _ODT_RANGES)])
_BLANKS = re.compile(" {2,}")

# The separator of paragraphs, and the mark of an element, which is its number between control
# characters.
_PARAGRAPH = "\x00"
_MARK = re.compile("\x01([ocpb])(\\d+)\x02")
_ITEM = re.compile("\x01[ocpb]\\d+\x02|\\s+|[^\x01]", re.DOTALL)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


OfficeText = tuple[str, Callable[[str], bytes]]
"""
The text of a document's paragraphs, with numbers instead of elements, and a function. The function
writes the document with another text that contains the same numbers.
"""


def read_docx(content: bytes) -> OfficeText:
    """Read a Word document; raise `TextError` for another kind of file or an unsafe file."""
    archive = Archive(content, "a .docx file")
    names = [name for name in archive.contents if _DOCX_PART.fullmatch(name)]
    if "word/document.xml" not in names:
        raise TextError("a .docx file must hold word/document.xml, but it does not; save it again.")
    if archive.xml("word/document.xml").getroot().tag != f"{_W}document":
        raise TextError(
            "a .docx file must be in Word's default format, but it is in another format, such as "
            "Strict Open XML; save it as “Word Document (.docx)”."
        )
    return _office_text(archive, names, f"{_W}p", _DocxParagraph)


def read_odt(content: bytes) -> OfficeText:
    """Read an OpenDocument text; raise `TextError` for another kind of file or an unsafe file."""
    archive = Archive(content, "an .odt file")
    names = [name for name in ("content.xml", "styles.xml") if name in archive.contents]
    if "content.xml" not in names:
        raise TextError("an .odt file must hold content.xml, but it does not; save it again.")
    if b"encryption-data" in archive.contents.get("META-INF/manifest.xml", b""):
        raise TextError("an .odt file must be readable without a password; save it without one.")
    return _office_text(archive, names, (f"{_TEXT}p", f"{_TEXT}h"), _OdtParagraph)


def parse_office(text: str, language: str, fits: Fits | None = None) -> Markup:
    """Find the sentences in the text of a document."""
    parts: list[str | Sentence] = []
    for paragraph in re.split(f"({_PARAGRAPH}|\x01b\\d+\x02)", text):
        if paragraph == _PARAGRAPH or paragraph.startswith("\x01b"):
            parts.append(paragraph)
        else:
            parts += find_sentences(list(_atoms(paragraph)), language, fits, _without_controls)
    return Markup.of(parts)


def office_words(text: str) -> str:
    """Extract the words from the text of a document."""
    return _MARK.sub(" ", text).replace(_PARAGRAPH, "\n")


def _without_controls(text: str) -> str:
    """Replace characters that XML does not allow, and characters that mark elements."""
    return _CONTROL.sub(" ", text)


def _atoms(text: str) -> Iterator[Atom]:
    """Split the text of a paragraph into characters and the numbers of elements."""
    is_spaced = True
    kinds = {"o": AtomKind.OPEN, "c": AtomKind.CLOSE, "p": AtomKind.POINT, "b": AtomKind.POINT}
    for match in _ITEM.finditer(text):
        raw = match[0]
        if mark := _MARK.fullmatch(raw):
            yield Atom(kinds[mark[1]], raw, name=mark[2])
        elif raw == _SOFT_HYPHEN:
            yield Atom(AtomKind.TEXT, raw)
        elif raw.isspace():
            yield Atom(AtomKind.TEXT, raw, "" if is_spaced else " ")
            is_spaced = True
        else:
            yield Atom(AtomKind.TEXT, raw, raw)
            is_spaced = False


def _office_text(
    archive: Archive,
    names: Sequence[str],
    tags: str | tuple[str, ...],
    kind: "type[_DocxParagraph] | type[_OdtParagraph]",
) -> OfficeText:
    """Read the paragraphs of some parts of a document."""
    trees = {name: archive.xml(name) for name in names}
    paragraphs = []
    for tree in trees.values():
        deleted = {p for part in tree.iter(f"{_TEXT}tracked-changes") for p in part.iter(tags)}
        for element in tree.iter(tags):
            if element in deleted:
                continue
            paragraph = kind(element)
            if any(map(str.isalpha, paragraph.text)):
                paragraphs.append(paragraph)

    def write(text: str) -> bytes:
        texts = text.split(_PARAGRAPH) if paragraphs else []
        for paragraph, translated in zip(paragraphs, texts, strict=True):
            if translated != paragraph.text:
                paragraph.rebuild(translated)
        return archive.write(trees)

    return _PARAGRAPH.join(paragraph.text for paragraph in paragraphs), write


@dataclass
class _Marks:
    """The elements that the numbers in a text represent."""

    elements: list[list[_Element]] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    starts: dict[_Element, int] = field(default_factory=dict)
    """The number of each range whose end was not read yet, by its end element."""

    def add(self, kind: str, elements: list[_Element]) -> int:
        """Append a mark for some elements to the text, and return the number in the mark."""
        self.elements.append(elements)
        self.pieces.append(f"\x01{kind}{len(self.elements) - 1}\x02")
        return len(self.elements) - 1

    def close(self, number: int) -> None:
        """Append the mark for the end of an element that contains text."""
        self.pieces.append(f"\x01c{number}\x02")

    def add_range(self, element: _Element, partners: "_Partners") -> None:
        """Append the mark for the start or the end of a range."""
        partner = partners.get(element)
        if element.tag in _RANGE_STARTS | _ODT_RANGE_STARTS:
            is_point = element.tag == _ANNOTATION and partner is None
            number = self.add("p" if is_point else "o", [element])
            if partner is not None:
                self.starts[partner] = number
        elif element in self.starts:
            number = self.starts[element]
            self.elements[number].append(element)
            self.close(number)
        else:
            self.elements.append([element])
            self.close(len(self.elements) - 1)


_Partners = dict[_Element, _Element]


def _range_partners(parent: _Element) -> _Partners:
    """Map the start of each range inside one parent to its end."""
    partners: _Partners = {}
    waiting: dict[tuple[str, str | None], _Element] = {}
    for child in parent:
        if child.tag in _RANGE_STARTS | _ODT_RANGE_STARTS:
            waiting[_range_key(child)] = child
        elif child.tag in _RANGE_ENDS | _ODT_RANGE_ENDS:
            start = waiting.pop(_range_key(child), None)
            if start is not None:
                partners[start] = child
    return partners


def _range_key(element: _Element) -> tuple[str, str | None]:
    """Return a key for a range: its kind and its name."""
    kind = re.sub("(?:Start|End|-start|-end)$", "", element.tag)
    names = (
        f"{_W}id",
        *(f"{_TEXT}{name}" for name in ("name", "id", "change-id")),
        f"{_OFFICE}name",
    )
    return kind, next((element.get(name) for name in names if element.get(name)), None)


class _DocxParagraph:
    """A paragraph of a Word document; it consists of runs, each with its own properties."""

    def __init__(self, element: _Element) -> None:
        self._element = element
        self._marks = _Marks()
        # The most frequent properties of the text need no tag.
        sizes: dict[bytes, int] = {}
        for run in element.iter(f"{_W}r"):
            if next(run.iterancestors(f"{_W}p"), None) is element:
                size = sum(len(text.text or "") for text in run.iterchildren(f"{_W}t"))
                key = _key(run.find(f"{_W}rPr"))
                sizes[key] = sizes.get(key, 0) + size
        self._base_key = max(sizes, key=lambda key: sizes[key]) if sizes else b""
        self._base: _Element | None = None
        self._open: tuple[bytes, int] | None = None
        self._read(element)
        self._end_run()
        self.text = "".join(self._marks.pieces)

    def rebuild(self, text: str) -> None:
        """Rebuild the paragraph from a text that contains the same numbers."""
        properties = [child for child in self._element if child.tag == f"{_W}pPr"]
        for child in list(self._element):
            self._element.remove(child)
        self._element.extend(properties)
        places: list[_Element] = [self._element]
        formats: list[_Element | None] = [self._base]
        for piece in re.split("(\x01[ocpb]\\d+\x02)", text):
            mark = _MARK.fullmatch(piece)
            if mark is None:
                if piece:
                    places[-1].append(_run(formats[-1], piece))
                continue
            elements = self._marks.elements[int(mark[2])]
            if mark[1] in "pb":
                places[-1].extend(map(_in_run, elements))
            elif elements and elements[0].tag in _RANGE_STARTS | _RANGE_ENDS:
                places[-1].append(elements[0 if mark[1] == "o" else -1])
            elif not elements or elements[0].tag == f"{_W}rPr":
                formats[-1:] = (
                    [elements[0] if elements else None] if mark[1] == "o" else [self._base]
                )
            elif mark[1] == "o":
                container = etree.SubElement(
                    places[-1], elements[0].tag, dict(elements[0].attrib), elements[0].nsmap
                )
                container.extend([child for child in elements[0] if child.tag in _SETTINGS])
                inner = _inner(elements[0])
                places.append(
                    container
                    if inner is elements[0]
                    else etree.SubElement(container, inner.tag, dict(inner.attrib), inner.nsmap)
                )
            elif len(places) > 1:
                places.pop()

    def _read(self, parent: _Element) -> None:
        """Read the content of a paragraph, or of a container in it such as a link."""
        partners = _range_partners(parent)
        for child in parent:
            if child.tag == f"{_W}pPr" or child.tag in _DROPPED or child.tag in _SETTINGS:
                continue
            if child.tag == f"{_W}r":
                self._read_run(child)
            elif child.tag in _CONTAINERS:
                self._end_run()
                number = self._marks.add("o", [child])
                self._read(_inner(child))
                self._end_run()
                self._marks.close(number)
            elif child.tag in _RANGE_STARTS | _RANGE_ENDS:
                self._end_run()
                self._marks.add_range(child, partners)
            else:
                self._end_run()
                self._marks.add("p", [child])

    def _read_run(self, run: _Element) -> None:
        """Read the text of a run, and the elements between the text."""
        properties = run.find(f"{_W}rPr")
        key = _key(properties)
        if key == self._base_key and self._base is None:
            self._base = properties
        for child in run:
            if child.tag == f"{_W}t" or child.tag in _HYPHENS:
                self._begin_run(key, properties)
                text = _HYPHENS.get(child.tag, child.text or "")
                self._marks.pieces.append(_without_controls(text))
            elif child.tag not in (f"{_W}rPr", *_DROPPED):
                self._end_run()
                self._marks.add("b" if child.tag in _BARRIERS else "p", [child])

    def _begin_run(self, key: bytes, properties: _Element | None) -> None:
        """Open a tag for the properties of a run, unless they are the most frequent ones."""
        if self._open is not None and self._open[0] == key:
            return
        self._end_run()
        if key != self._base_key:
            elements = [] if properties is None else [properties]
            self._open = key, self._marks.add("o", elements)

    def _end_run(self) -> None:
        """Close the tag of a run."""
        if self._open is not None:
            self._marks.close(self._open[1])
            self._open = None


class _OdtParagraph:
    """A paragraph of OpenDocument: text with elements in it."""

    def __init__(self, element: _Element) -> None:
        self._element = element
        self._marks = _Marks()
        self._read(element)
        self.text = "".join(self._marks.pieces)

    def rebuild(self, text: str) -> None:
        """Rebuild the paragraph from a text that contains the same numbers."""
        for child in list(self._element):
            self._element.remove(child)
        self._element.text, is_first = None, True
        places: list[_Element] = [self._element]
        for piece in re.split("(\x01[ocpb]\\d+\x02)", text):
            mark = _MARK.fullmatch(piece)
            if mark is None:
                _add_text(places[-1], piece, is_first=is_first)
                is_first = is_first and not piece
                continue
            elements = self._marks.elements[int(mark[2])]
            element = elements[0 if mark[1] == "o" else -1]
            if mark[1] in "pb" or element.tag in _ODT_RANGE_STARTS | _ODT_RANGE_ENDS:
                element.tail = None
                places[-1].append(element)
            elif mark[1] == "o":
                copy = etree.SubElement(
                    places[-1], element.tag, dict(element.attrib), element.nsmap
                )
                places.append(copy)
            elif len(places) > 1:
                places.pop()

    def _read(self, parent: _Element) -> None:
        """Read the text of an element and of its descendants."""
        self._add_text(parent.text)
        partners = _range_partners(parent)
        for child in parent:
            if child.tag in _ODT_CONTAINERS:
                number = self._marks.add("o", [child])
                self._read(child)
                self._marks.close(number)
            elif child.tag in _ODT_RANGE_STARTS | _ODT_RANGE_ENDS:
                self._marks.add_range(child, partners)
            elif child.tag == f"{_TEXT}s" and child.get(f"{_TEXT}c", "1") == "1":
                # An element with one space is the second of two spaces. More spaces are layout.
                self._marks.pieces.append(" ")
            else:
                self._marks.add("b" if child.tag in _ODT_BARRIERS else "p", [child])
            self._add_text(child.tail)

    def _add_text(self, text: str | None) -> None:
        """Read characters; adjacent spaces count as one space, as on the screen."""
        self._marks.pieces.append(re.sub("[ \t\r\n]+", " ", _without_controls(text or "")))


def _key(properties: _Element | None) -> bytes:
    """Return a key for the properties of a run; the spell checker's language is ignored."""
    if properties is None:
        return b""
    copy = deepcopy(properties)
    for language in copy.findall(f"{_W}lang"):
        copy.remove(language)
    return (
        etree.tostring(copy, method="c14n", exclusive=True, with_tail=False) if len(copy) else b""
    )


def _inner(container: _Element) -> _Element:
    """Return the element that holds the text of a container, which may be the container itself."""
    content = container.find(f"{_W}sdtContent")
    return container if content is None else content


def _in_run(element: _Element) -> _Element:
    """Put a picture or another part of a run into a separate run."""
    run = element.getparent()
    if run is None or run.tag != f"{_W}r":
        return element
    alone = etree.Element(run.tag, dict(run.attrib), run.nsmap)
    properties = run.find(f"{_W}rPr")
    if properties is not None:
        alone.append(deepcopy(properties))
    alone.append(element)
    return alone


def _run(properties: _Element | None, text: str) -> _Element:
    """Build a run of a Word document."""
    run = etree.Element(f"{_W}r")
    if properties is not None:
        run.append(deepcopy(properties))
    for piece in re.split(f"([{_SOFT_HYPHEN}{_HARD_HYPHEN}])", text):
        if piece in _HYPHEN_TAGS:
            etree.SubElement(run, _HYPHEN_TAGS[piece])
        elif piece:
            content = etree.SubElement(run, f"{_W}t")
            content.text = piece
            content.set(_SPACE, "preserve")
    return run


def _add_text(parent: _Element, text: str, *, is_first: bool) -> None:
    """Append text to an element of OpenDocument; write adjacent spaces as an element."""
    end = 0
    if is_first:  # spaces at the start of a paragraph are not shown
        end = len(text) - len(text.lstrip(" "))
        _add_blanks(parent, end)
    for blanks in _BLANKS.finditer(text, end):
        _add_characters(parent, text[end : blanks.start() + 1])
        _add_blanks(parent, len(blanks[0]) - 1)
        end = blanks.end()
    _add_characters(parent, text[end:])


def _add_blanks(parent: _Element, count: int) -> None:
    """Append spaces as an element."""
    if count:
        etree.SubElement(parent, f"{_TEXT}s", {f"{_TEXT}c": str(count)} if count > 1 else {})


def _add_characters(parent: _Element, text: str) -> None:
    """Append characters to an element."""
    if not len(parent):
        parent.text = (parent.text or "") + text
    else:
        parent[-1].tail = (parent[-1].tail or "") + text
