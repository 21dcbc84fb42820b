"""
Extraction of line-aligned text from archives.

An archive from the network is not trusted. Its member names are compared with the names in the
registry and never become names on the disk, and links are refused. Decompressed data may have at
most a hundred times the size of the archive, plus 1 MiB: text stays below this limit, unlike a
decompression bomb.
"""

import gzip
import lzma
import re
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Container, Iterator, Mapping, Sequence
from io import BufferedIOBase, BufferedReader, RawIOBase
from pathlib import Path
from typing import Protocol, runtime_checkable

from heedful.data.datasets.checksums import publish_file, sha256_of, writing
from heedful.data.datasets.spec import CorpusText
from heedful.errors import TextError
from heedful.files import open_ordinary

_TAR = (".tar", ".tar.gz", ".tgz", ".tar.xz")
_RATIO = 100  # text compresses about 4:1, with xz at best about 20:1
_ALLOWANCE = 1 << 20
_CHUNK = 1 << 20
_LONGEST_LINE = 1 << 20
_SEGMENT = re.compile(rb"\s*<seg\b[^>]*>(.*)</seg>", re.DOTALL)
_ENTITIES = ((b"&lt;", b"<"), (b"&gt;", b">"), (b"&quot;", b'"'), (b"&apos;", b"'"))
_DAMAGED = (
    EOFError,
    NotImplementedError,  # a compression method that zipfile does not support
    OSError,  # an offset outside the file, or an error of gzip
    RuntimeError,  # a password
    ValueError,
    lzma.LZMAError,
    struct.error,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)


def unpack(folder: Path, texts: Sequence[CorpusText]) -> None:
    """
    Extract the texts of a corpus from its downloads.

    Every archive is read once, up to its end, so that its own checksum is verified too; in a zip
    file, only the wanted members are read. A text gets its name when it is complete; an existing
    file with the same name and other content is kept.

    Raises `TextError` if an archive is damaged, lacks a member or has forbidden content, or if
    another file has the name of a text. Raises `StorageError` if the disk is full.
    """
    staging = folder / ".unpacking"
    wanted: dict[str, dict[str, tuple[Path, str]]] = {}
    for text in texts:
        for number, part in enumerate(text.parts):
            if part.download != text.name:
                place = staging / f"{text.name}.{number}"
                wanted.setdefault(part.download, {})[part.member] = (place, part.form)
    try:
        with writing(folder):
            shutil.rmtree(staging, ignore_errors=True)  # left by a run that was killed
            staging.mkdir()
        for download, members in wanted.items():
            _unpack_one(folder / download, members)
        for text in texts:
            if text.parts[0].download != text.name:
                places = [staging / f"{text.name}.{number}" for number in range(len(text.parts))]
                _put_together(places, folder / text.name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _unpack_one(path: Path, members: Mapping[str, tuple[Path, str]]) -> None:
    """Copy the lines of the wanted members of an archive to their files."""
    extracted = set()
    try:
        for name, stream in _members(path, members):
            place, form = members[name]
            with writing(place.parent.parent), place.open("wb") as file:
                for lines in _FORMS[form](stream):
                    file.write(lines)
            extracted.add(name)
    except _DAMAGED as error:
        raise _damage_error(path, error) from error
    if missing := sorted(members.keys() - extracted):
        raise TextError(
            f"{path} must contain {', '.join(missing)}, but does not; it is a different file or "
            "version: move it away and run the command again."
        )


def _members(path: Path, names: Container[str]) -> Iterator[tuple[str, BufferedReader]]:
    """Iterate over the wanted members of an archive; a plain file is its only member."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            yield from _zip_members(path, archive, names)
        return
    with _open_decompressed(path) as stream, _limit(stream, path) as content:
        if path.name.endswith(_TAR):
            with tarfile.open(fileobj=content, mode="r|") as archive:
                yield from _tar_members(path, archive, names)
        else:
            yield "", content
        while content.read(_CHUNK):
            pass  # the checksum of the whole file comes last


def _open_decompressed(path: Path) -> BufferedIOBase:
    """Open a file, and decompress it according to its suffix."""
    if path.suffix in (".gz", ".tgz"):
        return gzip.open(path)
    return lzma.open(path) if path.suffix == ".xz" else open_ordinary(path)


def _tar_members(
    path: Path, archive: tarfile.TarFile, names: Container[str]
) -> Iterator[tuple[str, BufferedReader]]:
    """Iterate over the wanted members of a tar archive."""
    seen = set()
    for entry in archive:
        name = entry.name.removeprefix("./")
        if name not in names:
            continue
        stream = archive.extractfile(entry) if entry.isreg() else None
        if stream is None or name in seen:
            raise _content_error(path, name)
        seen.add(name)
        if name.endswith(".gz"):
            with gzip.GzipFile(fileobj=stream) as inner, _limit(inner, path) as content:
                yield name, content
        else:
            with _limit(stream, path) as content:
                yield name, content


def _zip_members(
    path: Path, archive: zipfile.ZipFile, names: Container[str]
) -> Iterator[tuple[str, BufferedReader]]:
    """Iterate over the wanted members of a zip archive."""
    entries = [entry for entry in archive.infolist() if entry.filename in names]
    for entry in entries:
        name = entry.filename
        link = stat.S_ISLNK(entry.external_attr >> 16)
        if entry.is_dir() or link or [member.filename for member in entries].count(name) > 1:
            raise _content_error(path, name)
        with archive.open(entry) as stream, _limit(stream, path) as content:
            yield name, content


@runtime_checkable
class _Readable(Protocol):
    """A decompressing stream."""

    def read(self, size: int = ..., /) -> bytes:
        """Read some bytes."""


def _limit(stream: _Readable, path: Path) -> BufferedReader:
    """Limit the size of a decompressing stream."""
    return BufferedReader(_Guarded(stream, path), _CHUNK)


class _Guarded(RawIOBase):
    """A stream that limits decompressed size and reports read errors as a damaged archive."""

    def __init__(self, stream: _Readable, path: Path) -> None:
        self._stream = stream
        self._path = path
        self._left = _RATIO * path.stat().st_size + _ALLOWANCE

    def readable(self) -> bool:
        """Whether the stream can be read."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read some bytes."""
        try:
            chunk = self._stream.read(len(buffer))
        except OSError as error:
            raise _damage_error(self._path, error) from error
        self._left -= len(chunk)
        if self._left < 0:
            raise TextError(
                f"{self._path} must contain text, but decompresses to more than {_RATIO} times "
                f"its size, like a decompression bomb; it was not unpacked. Move it away."
            )
        buffer[: len(chunk)] = chunk
        return len(chunk)


def _plain(stream: BufferedReader) -> Iterator[bytes]:
    """Extract every line; the last one gets a line feed."""
    last = b""
    while chunk := stream.read(_CHUNK):
        last = chunk
        yield chunk
    if last and not last.endswith(b"\n"):
        yield b"\n"


def _segments(stream: BufferedReader) -> Iterator[bytes]:
    """Extract segments, with white space collapsed as in sacreBLEU."""
    for line in _lines(stream):
        if match := _SEGMENT.match(line):
            text = match[1]
            for entity, character in (*_ENTITIES, (b"&amp;", b"&")):
                text = text.replace(entity, character)
            yield b" ".join(text.split()) + b"\n"


def _talks(stream: BufferedReader) -> Iterator[bytes]:
    """Extract the lines that are not metadata of the talk."""
    for line in _lines(stream):
        if not (text := line.strip()).startswith(b"<"):
            yield text + b"\n"


_FORMS = {"plain": _plain, "segments": _segments, "talks": _talks}


def _lines(stream: BufferedReader) -> Iterator[bytes]:
    """Read lines of bounded length."""
    while line := stream.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise ValueError("a line of more than a megabyte")
        yield line


def _put_together(places: Sequence[Path], path: Path) -> None:
    """Join the parts of a text under its name, unless a different file has this name."""
    joined = places[0]
    with writing(path.parent), joined.open("ab") as file:
        for place in places[1:]:
            with open_ordinary(place) as part:
                shutil.copyfileobj(part, file, _CHUNK)
            place.unlink()
    if path.exists() and sha256_of(path) != sha256_of(joined):
        raise TextError(
            f"{path} must be a new file or equal the extracted text, but has other content; move "
            "it away or name another folder with --out."
        )
    with writing(path.parent):
        publish_file(joined, path)


def _damage_error(path: Path, error: Exception) -> TextError:
    """Build the error for a damaged archive."""
    return TextError(
        f"{path} must be a complete {path.suffix} file, but it is cut off or damaged "
        f"({error or type(error).__name__}); move it away and run the command again."
    )


def _content_error(path: Path, name: str) -> TextError:
    """Build the error for an archive with unexpected content."""
    return TextError(
        f"{path} must contain {name} exactly once, as an ordinary file, but contains it twice or "
        "as a link or folder; the archive was not unpacked. Move it away."
    )
