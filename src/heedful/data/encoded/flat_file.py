"""
Flat files for rows of different lengths, and folders written atomically.

One file holds the values of all rows end to end, the other where each row begins. Both are read
through the memory map, so that what is not used takes no memory.
"""

import mmap
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from io import BufferedWriter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.errors import RunFolderError, StorageError
from heedful.files import open_ordinary, sync

BLOCK_BYTES = 64 << 20
"""Bytes that share a digest; a multiple of the size of every value."""
_DIGEST_BYTES = 16
# Offsets that are compared at once, so that little memory is needed.
_OFFSETS = 1 << 20


class MappedFile:
    """A mapped file of numbers; raises `OSError` or `ValueError` if it cannot be mapped."""

    def __init__(self, path: Path, dtype: np.dtype[Any], count: int, again: str) -> None:
        self.path = path
        self.values: NDArray[Any] = np.empty(0, dtype)
        self._map: mmap.mmap | None = None
        self._again = again
        if count:  # an empty file cannot be mapped
            with open_ordinary(path) as file:
                size = count * dtype.itemsize
                self._map = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
            # A plain array: slicing numpy's memmap costs ten times as much.
            self.values = np.frombuffer(self._map, dtype)

    def require_size(self) -> None:
        """Raise `RunFolderError` if the file has been cut off since it was mapped."""
        if self._map is not None and (size := self._map.size()) < self.values.nbytes:
            raise RunFolderError(
                f"{self.path} must keep its {self.values.nbytes:,} bytes while it is read, but has "
                f"{size:,} now: something cut it off. Checkpoints are intact; for "
                f"{self.path.parent}, {self._again}."
            )


def check_rising(path: Path, offsets: NDArray[Any], again: str) -> None:
    """Refuse offsets that lead backwards: their rows would be empty, or parts of others."""
    for first in range(0, len(offsets) - 1, _OFFSETS):
        part = offsets[first : first + _OFFSETS + 1]
        if (part[1:] < part[:-1]).any():
            raise RunFolderError(
                f"{path} must lead from each sentence to the next, but it leads backwards: it is "
                f"damaged; {again}."
            )


class BlockDigests:
    """Digests of a file that is being written, block by block."""

    def __init__(self) -> None:
        self._finished: list[str] = []
        self._current = blake2b(digest_size=_DIGEST_BYTES)
        self._room = BLOCK_BYTES

    def update(self, content: bytes) -> None:
        """Digest the next bytes of the file."""
        rest = memoryview(content)
        while rest:
            part, rest = rest[: self._room], rest[self._room :]
            self._current.update(part)
            self._room -= len(part)
            if not self._room:
                self._finished.append(self._current.hexdigest())
                self._current = blake2b(digest_size=_DIGEST_BYTES)
                self._room = BLOCK_BYTES

    def hexdigests(self) -> list[str]:
        """Return one digest per block; the last block may be shorter."""
        return [*self._finished, *[self._current.hexdigest()] * (self._room < BLOCK_BYTES)]


class CheckedValues:
    """
    The values of a mapped file; each block is checked when it is first read.

    `beside`: files that are read along with it, whose sizes are compared too. Without digests,
    values are only checked to be below `limit`.
    """

    def __init__(
        self,
        file: MappedFile,
        digests: Sequence[str] | None,
        *,
        again: str,
        limit: int | None = None,
        beside: Sequence[MappedFile] = (),
    ) -> None:
        self._files, self._digests = (file, *beside), digests
        self._path, self._values = file.path, file.values
        self._again, self._limit = again, limit
        self._block_bytes = BLOCK_BYTES
        count = -(-self._values.nbytes // self._block_bytes)
        if digests is not None and len(digests) != count:
            raise RunFolderError(
                f"{file.path} must have a digest for each of its {count:,} blocks, but "
                f"{len(digests):,} are there: one of the two was changed; {again}."
            )
        self._unread = set(range(count))

    def __len__(self) -> int:
        """Count the values."""
        return len(self._values)

    def require_sizes(self) -> None:
        """Raise `RunFolderError` if a file has been cut off since it was mapped."""
        for file in self._files:
            file.require_size()

    def read(self, begin: int, end: int) -> NDArray[Any]:
        """Check and return the values from `begin` to before `end`, as a read-only view."""
        if self._unread and begin < end:
            size = self._values.itemsize
            first, last = begin * size // self._block_bytes, (end * size - 1) // self._block_bytes
            for block in self._unread.intersection(range(first, last + 1)):
                self._check(block)
        return self._values[begin:end]

    def gather(self, begins: NDArray[np.int64], lengths: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Check and copy the values of several rows, one row after the other."""
        if self._unread and len(begins):
            size = self._values.itemsize
            ends = np.maximum(begins, begins + lengths - 1)
            touched = {*(begins * size // self._block_bytes), *(ends * size // self._block_bytes)}
            for block in self._unread.intersection(int(block) for block in touched):
                self._check(block)
        before = np.cumsum(lengths) - lengths  # values of the rows before each
        index = np.repeat(begins - before, lengths) + np.arange(int(lengths.sum()))
        return self._values[index]

    def read_all(self) -> NDArray[Any]:
        """All values."""
        return self.read(0, len(self._values))

    def _check(self, block: int) -> None:
        """Compare a block with its digest and its values with the limit."""
        self.require_sizes()
        per_block = self._block_bytes // self._values.itemsize
        values = self._values[block * per_block : (block + 1) * per_block]
        where = f"{self._path} (bytes {block * self._block_bytes:,} and on, {values.nbytes:,} long)"
        if self._digests is not None:
            found = blake2b(values.data, digest_size=_DIGEST_BYTES).hexdigest()
            if found != self._digests[block]:
                raise RunFolderError(
                    f"{where} must be as it was written, but has another digest: the disk or a "
                    f"copy changed it; {self._again}."
                )
        if self._limit is not None and (highest := int(values.max())) >= self._limit:
            raise RunFolderError(
                f"{where} must contain ids below {self._limit:,}, the size of the vocabulary, but "
                f"has {highest:,}; {self._again}."
            )
        self._unread.discard(block)


_OFFSET = np.dtype("<i8")


class FlatWriter:
    """A writer of rows to flat files."""

    def __init__(self, values: BufferedWriter, offsets: BufferedWriter) -> None:
        self.total = 0
        self._files = (values, offsets)
        self._digests = (BlockDigests(), BlockDigests())
        self._write(b"", np.zeros(1, _OFFSET).tobytes())

    def append(self, values: bytes, lengths: NDArray[np.integer[Any]]) -> None:
        """Append rows."""
        ends = self.total + lengths.cumsum(dtype=_OFFSET)
        self._write(values, ends.tobytes())
        self.total = int(ends[-1]) if len(ends) else self.total

    def blocks(self) -> tuple[list[str], list[str]]:
        """Digests of the blocks of both files."""
        values, offsets = (digests.hexdigests() for digests in self._digests)
        return values, offsets

    def _write(self, *contents: bytes) -> None:
        """Append to both files."""
        for file, digests, content in zip(self._files, self._digests, contents, strict=True):
            file.write(content)
            digests.update(content)


def map_flat(
    values: Path,
    offsets: Path,
    dtype: np.dtype[Any],
    digests: Mapping[str, Sequence[str]],
    again: str,
) -> tuple[CheckedValues, NDArray[np.int64]]:
    """
    Memory-map rows: the values, and the offset of each row with the end of the last.

    Offsets are checked now, values block by block as they are read: opening must not read the text.
    `digests` are those of the blocks, by the files' names; `again` tells the user how to repair
    damage. Raises `RunFolderError`.
    """
    files = []
    for path, item in ((values, dtype), (offsets, _OFFSET)):
        try:
            count, rest = divmod(path.stat().st_size, item.itemsize)
            if rest:
                raise RunFolderError(
                    f"{path} must hold whole numbers, but it was cut off; {again}."
                )
            files.append(MappedFile(path, item, count, again))
        except OSError as error:
            raise RunFolderError(
                f"{path} must be a file that can be read, but the system says "
                f"“{error.strerror or error}”; {again}."
            ) from error
    text, places = files
    edges = places.values
    if not len(edges) or edges[0] != 0 or edges[-1] != len(text.values):
        raise RunFolderError(
            f"{offsets} must lead through the {len(text.values):,} values of {values.name}, but it "
            f"does not: one of them is damaged; {again}."
        )
    checked = CheckedValues(text, digests[values.name], again=again, beside=[places])
    rising = CheckedValues(places, digests[offsets.name], again=again).read_all()
    check_rising(offsets, rising, again)
    return checked, rising


@contextmanager
def whole_folder(folder: Path, mark: str) -> Iterator[Path]:
    """
    Fill a folder atomically.

    Removes what a killed process left.

    Raises `StorageError` if the disk is full or the folder cannot be written, `RunFolderError` if
    `folder` holds something else.
    """
    partial = folder.with_name(f".{folder.name}.partial")
    taken = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    if taken and not (folder / mark).is_file():
        raise RunFolderError(
            f"{folder} must be free, but it holds something else; choose another folder or move it "
            "away."
        )
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        yield partial
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
        for changed in (folder, folder.parent):
            sync(changed)
    except OSError as error:
        raise StorageError(
            f"{folder} could not be written: “{error.strerror or error}”; make room or choose "
            "another folder."
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
