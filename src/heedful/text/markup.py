"""
A safe XML reader that yields events.

Expat is used directly, because `xml.etree` cannot refuse the declaration of an entity before its
use. Only XML's predefined entities are expanded, and no other file or address is opened. A document
type declaration that only names a DTD, as in many TMX files, is allowed but not read.

Expat decodes UTF-8, UTF-16, ISO-8859-1 and ASCII. Other encodings are decoded here if XML
processors know them. Python's other encodings, such as unicode_escape, are refused, because they
would change the text.

A character or reference that XML forbids (``&#x1F;``, ``R&D``, ``&nbsp;``) would make a parser
stop. The reader replaces it with `UNREADABLE`, so only its segment is left out. Files in UTF-16 are
not repaired.
"""

import codecs
import re
import shlex
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from io import BufferedIOBase
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from heedful.errors import TextError
from heedful.text.compression import UNPACKING, without_compression
from heedful.text.lines import LONGEST_LINE, on_one_line

_CHUNK = 1 << 16
_EXPAT_DECODES = frozenset(("utf-8", "utf-16", "utf-16le", "utf-16be", "iso-8859-1", "us-ascii"))
# IANA's names of encodings, and names that a few old programs write. Python knows windows-874 only
# as cp874.
_DECODED_HERE = re.compile(
    r"utf8|ascii|iso[-_]8859[-_]([1-9]|1[0134-6])|latin-?1|(windows-|cp)125[0-8]|(windows-|cp)874"
    r"|tis-620|koi8-[ru]|macintosh|shift[-_]jis|windows-31j|cp932|euc-jp|iso-2022-jp"
    r"|gb2312|gbk|gb18030|big5(-hkscs)?|euc-kr|ks_c_5601-1987|cp949",
    re.IGNORECASE,
)

UNREADABLE = "\ufdd0"
"""Replacement for characters and references that XML does not allow; a Unicode noncharacter."""

_MARK = b"&#xFDD0;"
_REPAIRED = frozenset(("", "utf-8", "us-ascii", "iso-8859-1"))
_SUSPECTS = rb"<!\[CDATA\[|\]\]>|&(?:#?[\w.-]{1,32};)?|[\x00-\x08\x0b\x0c\x0e-\x1f]"
_PREDEFINED = frozenset((b"&amp;", b"&lt;", b"&gt;", b"&quot;", b"&apos;"))
_NUMBER = re.compile(rb"&#(?:([0-9]{1,8})|x([0-9A-Fa-f]{1,8}));")
# The end of a chunk that may be the start of a match of `_SUSPECTS`.
_CUT = re.compile(
    rb"(?:&#?[\w.-]{0,32}|<(?:!(?:\[(?:C(?:D(?:A(?:T(?:A)?)?)?)?)?)?)?|\]{1,2}|\xef\xbf?)\Z"
)
_LONGEST_SUSPECT = 36


class Event(NamedTuple):
    """The start or end of an element."""

    tag: str
    """Name of the element, without a prefix."""
    attributes: dict[str, str] | None
    """Attributes if the element starts; None if it ends."""
    text: str
    """Text of a segment, on one line, when the segment ends; else empty."""


def read_events(
    stream: BufferedIOBase, name: str, codes: Collection[str] = (), flat: Collection[str] = ()
) -> Iterator[Event]:
    """
    Parse XML whose text is in ``<seg>`` elements.

    The file is parsed in chunks of 64 kilobytes. Characters and references that XML does not allow
    become `UNREADABLE`. Tags inside a segment are dropped; elements in `codes` are dropped with
    their content. An element in `flat` must not contain another element with the same name.

    Raises `TextError` if the file is not XML, has a wrong or unknown encoding, or declares or uses
    entities. Also raises it for nested flat elements and for segments or tags longer than
    `LONGEST_LINE`.
    """
    chunk = stream.read(_CHUNK)
    encoding = _declared_encoding(chunk)
    decodes_here = bool(encoding) and encoding.lower() not in _EXPAT_DECODES
    parser = expat.ParserCreate("utf-8" if decodes_here else None)
    parser.XmlDeclHandler = _declaration_check(encoding, name)
    handler = _Handler(parser, name, codes, flat)
    _refuse_entities(parser, name)
    decode = _decoder(encoding, parser, name) if decodes_here else bytes
    repair: _Repair | None = None
    if (decodes_here or encoding.lower() in _REPAIRED) and b"\0" not in chunk[:4]:
        repair = _Repair(is_utf8=encoding.lower() != "iso-8859-1")
    total = 0
    while chunk:
        content = decode(chunk)
        content = repair(content) if repair else content
        _feed(parser, content, name)
        yield from handler.events
        handler.events.clear()
        total += len(content)
        # expat holds back a tag or a comment that has not ended
        if max(total - parser.CurrentByteIndex, handler.segment_size) > LONGEST_LINE:
            raise TextError(
                f"{name} must have segments, tags and comments of at most {LONGEST_LINE:,} "
                f"characters, but the one that contains line {parser.CurrentLineNumber} is longer; "
                "repair the file."
            )
        chunk = stream.read(_CHUNK)
    content = decode(b"")
    _feed(parser, repair(content) + repair.rest() if repair else content, name)
    _feed(parser, b"", name, final=True)
    yield from handler.events


class _Handler:
    """A converter from expat's callbacks to events."""

    def __init__(
        self,
        parser: expat.XMLParserType,
        name: str,
        codes: Collection[str],
        flat: Collection[str],
    ) -> None:
        parser.buffer_text = True
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.text
        self.events: list[Event] = []
        self._parser = parser
        self._name = name
        self._codes = codes
        self._began = dict.fromkeys(flat, 0)  # line of the open element; 0 if none is open
        self.segment_size = 0
        self._segment: list[str] | None = None
        self._depth_of_code = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""
        tag = tag.rpartition(":")[2]
        if self._segment is None:
            if tag in self._began:
                self._open(tag)
            self.events.append(Event(tag, attributes, ""))
            if tag == "seg":
                self._segment, self.segment_size = [], 0
        elif self._depth_of_code or tag in self._codes:
            self._depth_of_code += 1

    def end(self, tag: str) -> None:
        """Handle the end of an element."""
        tag = tag.rpartition(":")[2]
        if self._segment is None:
            if tag in self._began:
                self._began[tag] = 0
            self.events.append(Event(tag, None, ""))
        elif self._depth_of_code:
            self._depth_of_code -= 1
        elif tag == "seg":
            self.events.append(Event(tag, None, on_one_line("".join(self._segment))))
            self._segment = None

    def text(self, piece: str) -> None:
        """Handle text of a segment."""
        if self._segment is not None and not self._depth_of_code:
            self._segment.append(piece)
            self.segment_size += len(piece)

    def _open(self, tag: str) -> None:
        """Remember where a flat element begins; refuse it inside one with the same name."""
        line = self._parser.CurrentLineNumber
        if began := self._began[tag]:
            raise TextError(
                f"{self._name} must close each <{tag}> before the next begins, but line {line} "
                f"opens one inside the <{tag}> of line {began}; repair the file."
            )
        self._began[tag] = line


class _Repair:
    """A filter of bytes that replaces characters and references that XML does not allow."""

    def __init__(self, *, is_utf8: bool) -> None:
        # U+FFFE and U+FFFF are forbidden too
        pattern = _SUSPECTS + (rb"|\xef\xbf[\xbe\xbf]" if is_utf8 else b"")
        self._suspects = re.compile(pattern)
        self._pending = b""
        self._in_cdata = False

    def __call__(self, chunk: bytes) -> bytes:
        """Filter a chunk; hold back its end if something forbidden may begin there."""
        content = self._pending + chunk
        cut = _CUT.search(content, max(0, len(content) - _LONGEST_SUSPECT))
        end = cut.start() if cut else len(content)
        self._pending = content[end:]
        return self._suspects.sub(self._check_piece, content[:end])

    def rest(self) -> bytes:
        """Filter the rest of the file, which was held back."""
        return self._suspects.sub(self._check_piece, self._pending)

    def _check_piece(self, match: re.Match[bytes]) -> bytes:
        """Return a piece of the file if XML allows it, else `_MARK`, outside CDATA."""
        piece = match[0]
        if piece in (b"<![CDATA[", b"]]>"):
            self._in_cdata = piece != b"]]>"
            return piece
        if piece[:1] != b"&":  # inside CDATA, a reference would be literal text
            return b"]]>" + _MARK + b"<![CDATA[" if self._in_cdata else _MARK
        return piece if self._in_cdata or _is_reference(piece) else _MARK


def _is_reference(piece: bytes) -> bool:
    """Whether a piece is a reference (to a character or an entity) that XML allows."""
    number = _NUMBER.fullmatch(piece)
    if number is None:
        return piece in _PREDEFINED
    code = int(number[1]) if number[1] else int(number[2], 16)
    return (
        code in (9, 10, 13)
        or 0x20 <= code < 0xD800
        or 0xE000 <= code < 0xFFFE
        or (0x10000 <= code < 0x110000)
    )


class _Declaration(Exception):
    """A signal that the declaration was parsed, with its encoding."""


def _declared_encoding(start: bytes) -> str:
    """Return the encoding that a document declares; empty if it declares none."""

    def stop(_version: str, encoding: str | None, _standalone: int) -> None:
        raise _Declaration(encoding or "")  # before expat looks the encoding up

    parser = expat.ParserCreate()
    parser.XmlDeclHandler = stop
    # Nothing after the declaration is parsed; in UTF-16 its last character is two bytes.
    with suppress(expat.ExpatError):
        try:
            parser.Parse(start[: start.find(b">") + 2])
        except _Declaration as declaration:
            return str(declaration)
    return ""


def _declaration_check(known: str, name: str) -> Callable[[str, str | None, int], None]:
    """Build a handler that refuses a declaration that extends beyond the first chunk."""

    def check(_version: str, encoding: str | None, _standalone: int) -> None:
        if (encoding or "") != known:
            raise TextError(
                f"{name} must declare its encoding in its first {_CHUNK:,} bytes, but the "
                "declaration is longer; repair the file."
            )

    return check


def _decoder(encoding: str, parser: expat.XMLParserType, name: str) -> Callable[[bytes], bytes]:
    """Build a function that converts chunks to UTF-8; an empty chunk marks the end."""
    if not _DECODED_HERE.fullmatch(encoding):
        raise TextError(
            f"{name} must be XML in an encoding that heedful can decode, but line 1 declares "
            f"“{encoding}”; convert the file to UTF-8 and declare it."
        )
    decoder = codecs.getincrementaldecoder(encoding.lower().replace("windows-874", "cp874"))()

    def decode(chunk: bytes) -> bytes:
        try:
            return decoder.decode(chunk, final=not chunk).encode()
        except UnicodeDecodeError as error:
            line = parser.CurrentLineNumber + error.object[: error.start].count(b"\n")
            raise TextError(
                f"{name} must be text in {encoding}, as it declares, but line {line} holds the "
                f"byte 0x{error.object[error.start]:02x}, which is invalid there; repair the file "
                "or its declaration."
            ) from error

    return decode


def _feed(parser: expat.XMLParserType, chunk: bytes, name: str, *, final: bool = False) -> None:
    """Parse a chunk."""
    try:
        parser.Parse(chunk, final)
    except expat.ExpatError as error:
        raise TextError(
            f"{name} must be well-formed XML in the encoding that it declares (UTF-8 if none), but "
            f"line {error.lineno}, column {error.offset + 1} is not "
            f"({expat.ErrorString(error.code)}); repair the file, for example with "
            f"{_recover(name)}."
        ) from error


def _refuse_entities(parser: expat.XMLParserType, name: str) -> None:
    """Make a parser refuse declared entities and the use of unknown entities."""

    def refuse(entity: str, what: str) -> None:
        raise TextError(
            f"{name} must have only the predefined entities of XML, such as &amp;, but line "
            f"{parser.CurrentLineNumber} {what} “{entity}”; write its text instead."
        )

    parser.EntityDeclHandler = lambda entity, *_: refuse(entity, "declares")
    parser.SkippedEntityHandler = lambda entity, _: refuse(entity, "uses")


def _recover(name: str) -> str:
    """Return the command that repairs a file as far as possible."""
    path = Path(name)
    repair = f"xmllint --recover {shlex.quote(name)}"
    if unpack := UNPACKING.get(path.suffix.lower()):
        repair = f"{unpack} {shlex.quote(name)} | xmllint --recover -"
    return f"{repair} > repaired{without_compression(path).suffix}"
