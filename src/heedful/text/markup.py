"""
A safe XML reader, which yields events.

Expat is driven by hand rather than through `xml.etree`, because only so can the declaration of an
entity be refused before it is used: no entity is ever expanded, and no other file or address is
opened. A document type that merely names its DTD, as every TMX file does, is let through unread.
"""

from collections.abc import Collection, Iterator
from io import BufferedIOBase
from typing import NamedTuple
from xml.parsers import expat

from heedful.errors import TextError
from heedful.text.lines import on_one_line

_CHUNK = 1 << 16


class Event(NamedTuple):
    """The start or end of an element."""

    tag: str
    """Name of the element, without a prefix."""
    attributes: dict[str, str] | None
    """As they are written, if the element begins; None if it ends."""
    text: str
    """Text of the element, on one line, if it is a segment that ends; else empty."""


def read_events(stream: BufferedIOBase, name: str, codes: Collection[str] = ()) -> Iterator[Event]:
    """
    Parse XML whose text is in ``<seg>`` elements.

    Holds the events of 64 kilobytes at a time. Elements inside a segment are dropped, those among
    `codes` with their content.

    Raises `TextError` if the file is not XML, is not in the encoding that it declares or in an
    unknown one, or declares or uses entities.
    """
    handler = _Handler(codes)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = handler.start
    parser.EndElementHandler = handler.end
    parser.CharacterDataHandler = handler.text
    _refuse_entities(parser, name)
    chunk = stream.read(_CHUNK)
    while chunk:
        _feed(parser, chunk, name)
        yield from handler.events
        handler.events.clear()
        chunk = stream.read(_CHUNK)
    _feed(parser, b"", name)


class _Handler:
    """A converter from expat's callbacks to events."""

    def __init__(self, codes: Collection[str]) -> None:
        self.events: list[Event] = []
        self._codes = codes
        self._segment: list[str] | None = None
        self._depth_of_code = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""
        tag = tag.rpartition(":")[2]
        if self._segment is None:
            self.events.append(Event(tag, attributes, ""))
            if tag == "seg":
                self._segment = []
        elif self._depth_of_code or tag in self._codes:
            self._depth_of_code += 1

    def end(self, tag: str) -> None:
        """Handle the end of an element."""
        tag = tag.rpartition(":")[2]
        if self._segment is None:
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


def _feed(parser: expat.XMLParserType, chunk: bytes, name: str) -> None:
    """Parse a chunk; an empty one is the end of the file."""
    try:
        parser.Parse(chunk, not chunk)
    except expat.ExpatError as error:
        raise TextError(
            f"{name} must be well-formed XML in the encoding that it declares (UTF-8 if none), but "
            f"line {error.lineno}, column {error.offset + 1} is not "
            f"({expat.ErrorString(error.code)}); repair the file."
        ) from error
    except (LookupError, ValueError) as error:
        raise TextError(
            f"{name} must be XML in an encoding that can be read, but line 1 declares one that "
            f"cannot be ({error}); convert the file to UTF-8 and declare that."
        ) from error


def _refuse_entities(parser: expat.XMLParserType, name: str) -> None:
    """Make a parser stop at the declaration of an entity and at the use of an unknown one."""

    def refuse(entity: str, what: str) -> None:
        raise TextError(
            f"{name} must do without entities of its own, but line {parser.CurrentLineNumber} "
            f"{what} “{entity}”; replace it by the text that it stands for."
        )

    parser.EntityDeclHandler = lambda entity, *_: refuse(entity, "declares")
    parser.SkippedEntityHandler = lambda entity, _: refuse(entity, "uses")
