"""
Reading and writing the zip files of office documents, with size limits.

Nothing is ever unpacked to disk, no name in an archive is opened as a path, and nothing that a
document links to is fetched. The declared sizes are not trusted: reading stops as soon as all
members together exceed the limit.
"""

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

from lxml import etree

from heedful.errors import TextError

_MOST_MEMBERS = 5_000
_MOST_BYTES = 1 << 26
_MOST_XML = 1 << 24
_MOST_TAGS = 400_000  # in all parsed parts together; parsing so many takes seconds
_MACROS = ("vbaproject.bin", "vbadata.xml", "basic/", "scripts/", "macrosheets/")


class Archive:
    """
    The members of a document.

    Raises `TextError` if the document is not a zip archive, is encrypted, has macros, or is too
    large.
    """

    def __init__(self, content: bytes, kind: str) -> None:
        self.kind, self._tags = kind, 0
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                self.members = archive.infolist()
                self._check_names()
                self.contents = self._read(archive)
        except (
            zipfile.BadZipFile,
            zlib.error,
            lzma.LZMAError,
            EOFError,
            OSError,
            NotImplementedError,
            RuntimeError,
            ValueError,
            struct.error,
        ) as error:
            raise TextError(
                f"{kind} must be a complete zip archive, but it cannot be read ({error}); save it "
                "again, without a password."
            ) from error

    def _check_names(self) -> None:
        """Refuse encrypted members, macros, too many members, and duplicate or unsafe names."""
        names = [member.filename for member in self.members]
        if len(names) > _MOST_MEMBERS or len(set(names)) < len(names):
            raise TextError(
                f"{self.kind} must hold at most {_MOST_MEMBERS:,} members with distinct names, "
                f"but it holds {len(names):,} members with {len(set(names)):,} distinct names; "
                "save it again, or split it into smaller documents."
            )
        for member in self.members:
            name = member.filename.lower()
            if member.flag_bits & 1:
                raise TextError(
                    f"{self.kind} must be readable without a password, but it is encrypted; "
                    "save it without one."
                )
            if name.startswith("/") or ".." in name.split("/") or "\\" in name or ":" in name:
                raise TextError(
                    f"{self.kind} must have relative member names without “..”, a backslash or a "
                    "colon, but one name is different; save it again."
                )
            if name.startswith(_MACROS[2:]) or name.rpartition("/")[2] in _MACROS:
                raise TextError(
                    f"{self.kind} must not contain macros, but it does; save it without them."
                )

    def _read(self, archive: zipfile.ZipFile) -> dict[str, bytes]:
        """Read all members; raise `TextError` if they exceed the size limit."""
        left = _MOST_BYTES
        contents = {}
        for member in self.members:
            with archive.open(member) as file:
                content = file.read(left + 1)
            left -= len(content)
            if left < 0:
                raise TextError(
                    f"{self.kind} must hold at most {_MOST_BYTES >> 20} MiB, but it holds more "
                    "when unpacked; split it into smaller documents."
                )
            contents[member.filename] = content
        return contents

    def xml(self, name: str) -> Any:
        """Parse a member; declarations of document types and entities are refused."""
        content = self.contents[name]
        if len(content) > _MOST_XML:
            raise TextError(
                f"{self.kind} must have members of at most {_MOST_XML >> 20} MiB, but “{name}” is "
                "larger; split it into smaller documents."
            )
        self._tags += content.count(b"<")
        if self._tags > _MOST_TAGS:
            raise TextError(
                f"{self.kind} must have at most {_MOST_TAGS:,} tags, but it has more; split it "
                "into smaller documents."
            )
        if b"<!DOCTYPE" in content:  # before anything is parsed
            raise self._declares(name)
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
        )
        try:
            tree = etree.ElementTree(etree.fromstring(content, parser))
        except etree.XMLSyntaxError as error:
            raise TextError(
                f"{self.kind} must hold well-formed XML, but “{name}” is not ({error}); "
                "save it again."
            ) from error
        if tree.docinfo.doctype or tree.docinfo.internalDTD is not None:
            raise self._declares(name)
        return tree

    def _declares(self, name: str) -> TextError:
        """Build the error for a document type declaration."""
        return TextError(
            f"{self.kind} must not declare a document type, but “{name}” does; save it again."
        )

    def write(self, changed: Mapping[str, Any]) -> bytes:
        """Write the archive with some members changed; all others stay the same, in order."""
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for member in self.members:
                content = self.contents[member.filename]
                if member.filename in changed:
                    content = etree.tostring(
                        changed[member.filename],
                        xml_declaration=True,
                        encoding="UTF-8",
                        standalone=True,
                    )
                # ODF requires an uncompressed first member
                stored = member.compress_type == zipfile.ZIP_STORED
                copy = zipfile.ZipInfo(member.filename, member.date_time)
                copy.external_attr = member.external_attr
                copy.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
                archive.writestr(copy, content)
        return stream.getvalue()
