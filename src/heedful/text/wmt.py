"""
Test sets of the Conference on Machine Translation (WMT), in both of their formats.

Until 2020 each side was a file of its own in a form of SGML. SGML parsers cannot read it, because
an ampersand or a less-than sign may be unescaped. So the file is scanned for the few tags that
matter, as NIST's mteval and sacreBLEU do. ::

    <srcset setid="newstest2014" srclang="any">
    <doc sysid="ref" docid="1" genre="news" origlang="en"><p>
    <seg id="1">A Republican strategy to counter the re-election of Obama</seg>

Since 2021 one XML file holds the source, the references and the translations of systems::

    <dataset id="newstest2021"><doc id="1" origlang="en">
      <src lang="en"><p><seg id="1">…</seg></p></src>
      <ref lang="de" translator="A"><p><seg id="1">…</seg></p></ref>
      <hyp lang="de" system="online-A"><p><seg id="1">…</seg></p></hyp>
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from io import BufferedIOBase

from heedful.errors import TextError
from heedful.text.lines import LONGEST_LINE, on_one_line
from heedful.text.markup import UNREADABLE, read_events
from heedful.text.skipped_rows import SkippedRows
from heedful.text.tmx import FORBIDDEN

_OUTSIDE = re.compile(r"<!--|<(/?)(seg|doc)(?=[\s/>]|$)", re.IGNORECASE)
_INSIDE = re.compile(r"<(/?)(seg|doc|srcset|refset|tstset)(?=[\s/>]|$)", re.IGNORECASE)
# A quotation mark that is never closed must not swallow the tags that follow.
_ATTRIBUTES = re.compile(r"""((?:"[^"<]*+"|'[^'<]*+'|[^"'<>]++)*+)>""")
_LINES_OF_A_TAG = 20
_ID = re.compile(r"""\sid\s*=\s*(["']?)\s*([0-9]{1,18})\s*\1(?=[\s/]|$)""", re.IGNORECASE)
_DOCUMENT = re.compile(r"""\sdocid\s*=\s*(["']?)\s*([^"'<>]*?)\s*\1(?=[\s/]|$)""", re.IGNORECASE)
_REFERENCE = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6}));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_SIDES = ("src", "ref", "hyp")


def read_segments(lines: Iterable[str], name: str) -> Iterator[tuple[tuple[str, str], str]]:
    """
    Read the segments of an SGM file, in the order of the file.

    Yields for each segment the document's name and the segment's number, then the text.

    Everything before the end tag is text. ``&amp;``, ``&lt;``, ``&gt;``, ``&quot;``, ``&apos;`` and
    numeric references such as ``&#233;`` are resolved. (sacreBLEU does not resolve them when it
    reads a file, but its tokenizer 13a resolves the first four.)

    Raises `TextError` if there is no segment, a segment is not closed, or segment numbers decrease
    within a document.
    """
    scan = _Scan(lines, name)
    last, has_segment, document = 0, False, ""
    while (tag := scan.tag()) is not None:
        ends, kind = bool(tag[1]), tag[2].lower()
        attributes = scan.attributes()
        if kind == "doc":
            last = 0
            if not ends:
                name_of_document = _DOCUMENT.search(attributes)
                document = name_of_document[2] if name_of_document else ""
        elif not ends:
            has_segment = True
            last = _risen(attributes, last, scan)
            empty = attributes.endswith("/")
            text = "" if empty else on_one_line(_resolve(scan.segment()))
            yield (document, str(last)), text
    if not has_segment:
        raise TextError(
            f'{name} must hold text in segments (<seg id="1">…</seg>), but it holds none; give a '
            "test set in WMT's format, or rename the file if it is plain text."
        )


def read_sides(
    stream: BufferedIOBase, name: str, parts: Sequence[str], skipped: SkippedRows
) -> Iterator[tuple[str, ...]]:
    """
    Read sides of a WMT test set in XML.

    Yields the texts of these sides for each segment of the source; empty if a side lacks it.

    Every side has a line for every segment of the source, in the order of the source, so that all
    are aligned. Test suites, which are documents without a reference, are skipped as in sacreBLEU.
    A segment is also skipped if any side has a character or a reference that XML does not allow.

    Raises `TextError` if a requested side is in no document, ``ref`` or ``hyp`` is ambiguous, or
    documents are nested.
    """
    available: dict[str, None] = {}
    for _, document in _documents(stream, name, skipped):
        available.update(dict.fromkeys(document))
        columns = [_column(document, part, name) for part in parts]
        for key in document.get("src", {}):
            yield tuple(column.get(key, "") for column in columns)
    for part in parts:
        if not any(_answers(side, part) for side in available):
            sides = ", ".join(f"“{side}”" for side in available)
            holds = (
                f"it has only {sides}; name one of these" if sides else "no document of it has text"
            )
            raise TextError(f"{name} must have the side “{part}” of a test set, but {holds}.")


def read_numbers(stream: BufferedIOBase, name: str) -> Iterator[tuple[str, str]]:
    """
    Read the document and number of each segment of an XML test set, in the order of `read_sides`.

    Yields the document's name and the segment's number. Raises `TextError` as `read_sides` does.
    """
    for document_name, document in _documents(stream, name, SkippedRows()):
        for number in document.get("src", {}):
            yield document_name, number


_Document = dict[str, dict[str, str]]
"""The texts of each side, by segment number."""


def _documents(
    stream: BufferedIOBase, name: str, skipped: SkippedRows
) -> Iterator[tuple[str, _Document]]:
    """Read the documents of a test set in XML with their names, except test suites."""
    document: _Document = {}
    document_name = side = number = ""
    is_suite = False
    for tag, attributes, text in read_events(stream, name, flat=("doc", *_SIDES)):
        if attributes is None:
            if tag == "seg":
                document.setdefault(side, {}).setdefault(number, text)
            elif tag in _SIDES:
                side = ""
            elif tag == "doc" and not is_suite:
                document.pop("", None)  # segments of no side
                _drop_unreadable(document, document_name, name, skipped)
                yield document_name, document
        elif tag == "doc":
            document, is_suite = {}, "testsuite" in attributes
            document_name = attributes.get("id", "")
        elif tag in _SIDES:
            who = attributes.get("translator" if tag == "ref" else "system", "")
            side = f"{tag}:{who}" if who and tag != "src" else tag
        elif tag == "seg":
            number = attributes.get("id", str(1 + len(document.get(side, {}))))


def _drop_unreadable(
    document: _Document, document_name: str, name: str, skipped: SkippedRows
) -> None:
    """Drop the segments in which any side has an `UNREADABLE` character."""
    broken = {
        number for side in document.values() for number, text in side.items() if UNREADABLE in text
    }
    for number in sorted(broken):
        skipped.add(name, f"segment “{number}” of the document “{document_name}”", FORBIDDEN)
        for side in document.values():
            side.pop(number, None)


class _Scan:
    """A position in the lines of an SGM file."""

    def __init__(self, lines: Iterable[str], name: str) -> None:
        self.name = name
        self.number = 0
        self._lines = iter(lines)
        self._line = ""
        self._at = 0

    def tag(self) -> re.Match[str] | None:
        """Find the next tag outside of segments, and stop after its name."""
        while True:
            tag = _OUTSIDE.search(self._line, self._at)
            if tag is None:
                if not self._advance():
                    return None
            elif tag[0] == "<!--":
                self._skip_comment()
            else:
                self._at = tag.end()
                return tag

    def attributes(self) -> str:
        """Read the attributes up to the end of a tag, which may be on a later line."""
        began = self.number
        for _ in range(_LINES_OF_A_TAG):
            if attributes := _ATTRIBUTES.match(self._line, self._at):
                self._at = attributes.end()
                return attributes[1]
            rest = self._line[self._at :]
            if not self._advance():
                break
            self._line = f"{rest}\n{self._line}"
            self._check_size(len(self._line), "tag", began)
        raise self._open("tag", began)

    def segment(self) -> str:
        """Read up to the end of a segment."""
        began, pieces, size = self.number, list[str](), 0
        while True:
            tag = _INSIDE.search(self._line, self._at)
            pieces.append(self._line[self._at : tag.start() if tag else None])
            size += len(pieces[-1]) + 1
            self._check_size(size, "segment", began)
            if tag is not None:
                self._at = tag.end()
                if not tag[1] or tag[2].lower() != "seg":
                    raise self._open("segment", began)
                self.attributes()
                return "\n".join(pieces)
            if not self._advance():
                raise self._open("segment", began)

    def _skip_comment(self) -> None:
        """Skip to the end of a comment."""
        began = self.number
        while (end := self._line.find("-->", self._at)) < 0:
            if not self._advance():
                raise self._open("comment", began)
        self._at = end + 3

    def _advance(self) -> bool:
        """Move to the next line."""
        line = next(self._lines, None)
        if line is not None:
            self._line, self._at, self.number = line, 0, self.number + 1
        return line is not None

    def _check_size(self, size: int, element: str, line: int) -> None:
        """Refuse an element with more characters than `LONGEST_LINE`."""
        if size > LONGEST_LINE:
            raise TextError(
                f"{self.name} must have segments and tags of at most {LONGEST_LINE:,} characters, "
                f"but a {element} that begins in line {line} is longer; repair the file."
            )

    def _open(self, element: str, line: int) -> TextError:
        """Build the error for an element that is not closed."""
        return TextError(
            f"{self.name} must close every {element}, but one that begins in line {line} is still "
            f"open in line {self.number}; repair the file."
        )


def _risen(attributes: str, last: int, scan: _Scan) -> int:
    """Return the number of a segment, or `last` if it has none; refuse a number below `last`."""
    match = _ID.search(attributes)
    number = int(match[2]) if match else last
    if number < last:
        raise TextError(
            f"{scan.name} must hold the segments of a document in ascending order, but in line "
            f"{scan.number} segment {number} comes after segment {last}; sort them, so that they "
            "align with the other files."
        )
    return number


def _resolve(text: str) -> str:
    """Resolve character references."""
    return _REFERENCE.sub(_character, text) if "&" in text else text


def _character(reference: re.Match[str]) -> str:
    """Return the referenced character, or the reference itself if it is unknown."""
    named, decimal, hexadecimal = reference.groups()
    if named:
        return _NAMED[named]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    is_character = 0 < code < 0xD800 or 0xDFFF < code < 0x110000
    return chr(code) if is_character else reference[0]


def _column(document: _Document, part: str, name: str) -> dict[str, str]:
    """Choose the side of a document that the name `part` selects."""
    matches = [side for side in document if _answers(side, part)]
    if len(matches) > 1:
        sides = ", ".join(f"“{side}”" for side in matches)
        raise TextError(
            f"{name} must have a single side “{part}”, but it holds {sides}; choose one of these."
        )
    return document[matches[0]] if matches else {}


def _answers(side: str, part: str) -> bool:
    """Whether a side matches a part's name: “ref” matches any reference."""
    return side == part or (part in _SIDES and side.startswith(f"{part}:"))
