"""
Compressed files: the first bytes of a file decide how it is unpacked.

The suffix may be missing, written in capitals, or unknown. A file is refused if its suffix
names a compression but its first bytes do not: it may be the error page of a download. Archives
hold several files, so they are refused, and the message names the command that unpacks them.
"""

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, cast

from heedful.errors import TextError

_BUFFER = 1 << 17
_MOST_MAGIC = 16
_LEAST = 6  # minimum size of a compressed file, in bytes

DAMAGED: tuple[type[Exception], ...] = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)
"""Errors that readers raise for a truncated or damaged file."""


@dataclass(frozen=True)
class Compression:
    """A kind of compressed file."""

    suffix: str
    magic: re.Pattern[bytes]
    """Pattern of its first bytes."""
    unpack: str
    """The command that writes the unpacked content to standard output."""
    open: Callable[[Any], Any]
    """Returns a reader of the unpacked content."""


def _open_zstandard(file: Any) -> Any:
    """Open a Zstandard file with Python's own module, or its backport for older versions."""
    try:
        from compression import zstd
    except ImportError:
        try:
            from backports import zstd
        except ImportError:
            raise TextError(
                f"{file.name} needs the package backports.zstd for Zstandard, which is not "
                "installed; install it with: pip install 'heedful[zstd]', or unpack the file: "
                f"zstd -d {file.name}."
            ) from None
    return _Zstandard(zstd.ZstdFile(file), zstd.ZstdError)


class _Zstandard(RawIOBase):
    """A reader of Zstandard that converts its errors to `zlib.error`, one of `DAMAGED`."""

    def __init__(self, file: Any, error: type[Exception]) -> None:
        self._file, self._error = file, error

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return cast(int, self._file.readinto(buffer))
        except self._error as error:
            raise zlib.error(str(error)) from error


COMPRESSIONS = (
    Compression(".gz", re.compile(rb"\x1f\x8b"), "gzip -dc", gzip.open),
    Compression(
        ".bz2", re.compile(rb"BZh[1-9](1AY&SY|\x17\x72\x45\x38\x50\x90)"), "bzip2 -dc", bz2.open
    ),
    Compression(".xz", re.compile(rb"\xfd7zXZ\0"), "xz -dc", lzma.open),
    Compression(
        ".zst",
        re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
        "zstd -dc",
        _open_zstandard,
    ),
)
"""Compression formats that are unpacked while a file is read."""

UNPACKING = {kind.suffix: kind.unpack for kind in COMPRESSIONS}
"""For each suffix, the command that writes the unpacked content to standard output."""
SUFFIXES = tuple(UNPACKING)

# Refused kinds of files: first bytes, description, and the command that converts a file.
_ARCHIVES = (
    (re.compile(rb"PK\x03\x04"), "a zip archive or an office document", "unzip {}"),
    (re.compile(rb"7z\xbc\xaf\x27\x1c"), "a 7z archive", "7z x {}"),
    (re.compile(rb"Rar!\x1a\x07"), "a rar archive", "unrar x {}"),
    (re.compile(rb"\x04\x22\x4d\x18"), "a file compressed with lz4", "lz4 -d {}"),
    (re.compile(rb"\x1f\x9d"), "a file compressed with Unix compress", "gzip -d {}"),
    (re.compile(rb"%PDF-"), "a PDF document", "pdftotext {}"),
)


def without_compression(path: Path) -> Path:
    """Remove the compression suffix from a name; the suffix before it shows the format."""
    return path.with_suffix("") if path.suffix.lower() in SUFFIXES else path


def unpacking_command(start: bytes) -> str:
    """Name the command that unpacks a file with these first bytes; empty if none is needed."""
    return next((kind.unpack for kind in COMPRESSIONS if kind.magic.match(start)), "")


def open_unpacked(path: Path, stack: ExitStack) -> BufferedReader:
    """
    Open a file for reading bytes, and unpack it according to its first bytes; `stack` closes it.

    Raises `TextError` for an archive, a PDF or an unsupported compression, and for bytes that
    contradict the suffix.
    """
    file = stack.enter_context(path.open("rb"))
    start = file.peek(_MOST_MAGIC)[:_MOST_MAGIC]
    for kind in COMPRESSIONS:
        if kind.magic.match(start):
            return BufferedReader(cast(RawIOBase, stack.enter_context(kind.open(file))), _BUFFER)
    for magic, what, command in _ARCHIVES:
        if magic.match(start):
            raise TextError(
                f"{path} must be text, but its first bytes are those of {what}; convert it "
                f"({command.format(path)}) and give the text file."
            )
    if path.suffix.lower() in SUFFIXES:
        _refuse_uncompressed(path, start)
    return file


def _refuse_uncompressed(path: Path, start: bytes) -> None:
    """Refuse a file that is not compressed although its suffix names a compression."""
    if len(start) < _LEAST:
        raise EOFError(f"it ends after {len(start)} bytes")
    raise TextError(
        f"{path} must be compressed, as its name says, but its first bytes are not those of a "
        f"compressed file; rename it to {path.with_suffix('').name} if it is plain text, or "
        "download it again."
    )
