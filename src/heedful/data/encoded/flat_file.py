"""
Flat files for rows of different lengths.

One file contains the concatenated values of all rows; the other file contains the start of each
row. Values are read when they are used, so a text may be larger than main memory. All starts are
read when the files are opened.
"""

import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from io import BufferedWriter
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from heedful.errors import RunFolderError
from heedful.files import open_ordinary

BLOCK_BYTES = 64 << 20
"""Number of bytes that share one digest; a multiple of the size of every type of value."""
_DIGEST_BYTES = 16
# Number of bytes of a block that are checked at once, so that little memory is needed.
_PIECE_BYTES = 1 << 20
OFFSET = np.dtype("<i8")
"""Type of an offset, the position of a row's first value."""
# Number of offsets that are compared at once, so that little memory is needed.
_OFFSETS = 1 << 20


@contextmanager
def reading(path: Path, again: str) -> Iterator[None]:
    """Turn a system error into a `RunFolderError` with the remedy."""
    try:
        yield
    except OSError as error:
        raise RunFolderError(
            f"{path} must be a file that can be read, but the system says "
            f"“{error.strerror or error}”; {again}."
        ) from error


class FlatFile:
    """
    An open file of numbers that is read part by part.

    Parts are read with system calls, not through a memory map. If the file is truncated, a call
    reports it, but access to a map kills the process.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any], count: int, again: str) -> None:
        self.path, self.dtype, self.count = path, dtype, count
        self.again = again
        with reading(path, again), open_ordinary(path) as file:
            self._descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._descriptor)

    @property
    def nbytes(self) -> int:
        """Size of all numbers in bytes."""
        return self.count * self.dtype.itemsize

    def read(self, begin: int, end: int) -> NDArray[Any]:
        """Read the numbers from `begin` up to, but not including, `end`."""
        values = np.empty(end - begin, self.dtype)
        self.fill(values.view(np.uint8).data, begin * self.dtype.itemsize)
        return values

    def fill(self, view: memoryview, place: int) -> None:
        """Fill a view with bytes from `place` on; raises `RunFolderError` if too few are left."""
        with reading(self.path, self.again):
            while view:
                if not (size := os.preadv(self._descriptor, (view,), place)):
                    self._refuse()
                view, place = view[size:], place + size

    def _refuse(self) -> NoReturn:
        """Report a file that ends too early."""
        size = os.fstat(self._descriptor).st_size
        raise RunFolderError(
            f"{self.path} must keep its {self.nbytes:,} bytes while it is read, but has {size:,} "
            f"now: it was cut off. Checkpoints are intact; for {self.path.parent}, {self.again}."
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
    """The values of a file; each block is checked when it is first read."""

    def __init__(self, file: FlatFile, digests: Sequence[str], *, limit: int | None = None) -> None:
        self._file, self._digests, self._limit = file, digests, limit
        self._block_bytes = BLOCK_BYTES
        count = -(-file.nbytes // self._block_bytes)
        if len(digests) != count:
            raise RunFolderError(
                f"{file.path} must have a digest for each of its {count:,} blocks, but it has "
                f"{len(digests):,}: the file or its digests were changed; {file.again}."
            )
        self._unread = set(range(count))

    def __len__(self) -> int:
        """Count the values."""
        return self._file.count

    def read(self, begin: int, end: int) -> NDArray[Any]:
        """Check and read the values from `begin` up to, but not including, `end`."""
        if self._unread and begin < end:
            size = self._file.dtype.itemsize
            first, last = begin * size // self._block_bytes, (end * size - 1) // self._block_bytes
            for block in self._unread.intersection(range(first, last + 1)):
                self._check(block)
        return self._file.read(begin, end)

    def gather(self, begins: NDArray[np.int64], lengths: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Check and read the values of several rows, one row after the other."""
        size = self._file.dtype.itemsize
        if self._unread and len(begins):
            ends = np.maximum(begins, begins + lengths - 1)
            touched = {*(begins * size // self._block_bytes), *(ends * size // self._block_bytes)}
            for block in self._unread.intersection(int(block) for block in touched):
                self._check(block)
        values = np.empty(int(lengths.sum()), self._file.dtype)
        view = values.view(np.uint8).data
        before = 0  # number of bytes already filled
        for place, row in zip((begins * size).tolist(), (lengths * size).tolist(), strict=True):
            self._file.fill(view[before : before + row], place)
            before += row
        return values

    def check(self, values: NDArray[Any] | None = None) -> None:
        """
        Check every block that has not been read; raises `RunFolderError` if one is damaged.

        `values`: all values of the file if they were read, so that they are not read again.
        """
        for block in sorted(self._unread):
            self._check(block, values)

    def _check(self, block: int, values: NDArray[Any] | None = None) -> None:
        """Read a block in pieces; check its digest, and that its values are below the limit."""
        size = self._file.dtype.itemsize
        begin = block * self._block_bytes
        end = min(begin + self._block_bytes, self._file.nbytes)
        digest, highest = blake2b(digest_size=_DIGEST_BYTES), 0
        for place in range(begin, end, _PIECE_BYTES):
            span = place // size, min(place + _PIECE_BYTES, end) // size
            part = self._file.read(*span) if values is None else values[slice(*span)]
            digest.update(part.data)
            highest = max(highest, int(part.max())) if self._limit is not None else 0
        where = f"{self._file.path} (bytes {begin:,} to {end - 1:,})"
        if digest.hexdigest() != self._digests[block]:
            raise RunFolderError(
                f"{where} must be unchanged, but its digest differs: the file was damaged on the "
                f"disk or by copying; {self._file.again}."
            )
        if self._limit is not None and highest >= self._limit:
            raise RunFolderError(
                f"{where} must contain ids below {self._limit:,}, the size of the vocabulary, but "
                f"contains {highest:,}; {self._file.again}."
            )
        self._unread.discard(block)


class FlatWriter:
    """A writer of rows to flat files."""

    def __init__(self, values: BufferedWriter, offsets: BufferedWriter) -> None:
        self.total = 0
        self._files = (values, offsets)
        self._digests = (BlockDigests(), BlockDigests())
        self._write(b"", np.zeros(1, OFFSET).tobytes())

    def append(self, values: bytes, lengths: NDArray[np.integer[Any]]) -> None:
        """Append rows."""
        ends = self.total + lengths.cumsum(dtype=OFFSET)
        self._write(values, ends.tobytes())
        self.total = int(ends[-1]) if len(ends) else self.total

    def blocks(self) -> tuple[list[str], list[str]]:
        """Return the digests of the blocks of both files."""
        values, offsets = (digests.hexdigests() for digests in self._digests)
        return values, offsets

    def _write(self, *contents: bytes) -> None:
        """Append to both files."""
        for file, digests, content in zip(self._files, self._digests, contents, strict=True):
            file.write(content)
            digests.update(content)


@dataclass(frozen=True, eq=False)
class FlatRows:
    """Rows of values, read from the disk as they are used."""

    values: CheckedValues
    """The values of all rows, concatenated."""
    offsets: NDArray[np.int64]
    """The start of each row in `values`, and the end of the last row."""

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> NDArray[np.int32]:
        """Number of values of each row."""
        return np.diff(self.offsets).astype(np.int32)

    def row(self, index: int) -> NDArray[Any]:
        """Read a row; raises `IndexError` if there is no such row."""
        if not 0 <= index < len(self):
            raise IndexError(f"pair {index} of {len(self)}")
        return self.values.read(int(self.offsets[index]), int(self.offsets[index + 1]))

    def gather(self, rows: NDArray[np.integer[Any]]) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Read several rows, one after the other; also return their lengths."""
        lengths = self.lengths[rows]
        return self.values.gather(self.offsets[rows], lengths), lengths


def open_flat(
    values: Path,
    offsets: Path,
    dtype: np.dtype[Any],
    digests: Mapping[str, Sequence[str]],
    again: str,
    limit: int | None = None,
) -> FlatRows:
    """
    Open rows from two files: the values of all rows, and the offset of each row.

    `digests`: digests of the blocks, by file name. `again`: how to repair damage, for messages.

    Offsets are read and checked now; values are checked block by block when they are first used.
    Raises `RunFolderError` if a file is missing or damaged.
    """
    files = []
    for path, item in ((values, dtype), (offsets, OFFSET)):
        with reading(path, again):
            count, rest = divmod(path.stat().st_size, item.itemsize)
        if rest:
            raise RunFolderError(
                f"{path} must contain complete numbers, but it was cut off; {again}."
            )
        files.append(FlatFile(path, item, count, again))
    text, places = files
    starts = read_offsets(places, text, digests[offsets.name])
    return FlatRows(CheckedValues(text, digests[values.name], limit=limit), starts)


def read_offsets(file: FlatFile, values: FlatFile, digests: Sequence[str]) -> NDArray[np.int64]:
    """Read the offsets of the rows of `values` once; raise `RunFolderError` if they are damaged."""
    offsets = file.read(0, file.count)
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != values.count:
        span = f"runs from {offsets[0]:,} to {offsets[-1]:,}" if len(offsets) else "is empty"
        raise RunFolderError(
            f"{file.path} must cover the {values.count:,} values of {values.path.name}, but it "
            f"{span}: one of the two files is damaged; {file.again}."
        )
    CheckedValues(file, digests).check(offsets)
    for first in range(0, len(offsets) - 1, _OFFSETS):
        part = offsets[first : first + _OFFSETS + 1]
        if (part[1:] < part[:-1]).any():
            raise RunFolderError(
                f"{file.path} must contain increasing offsets, but they decrease: it is damaged; "
                f"{file.again}."
            )
    return offsets
