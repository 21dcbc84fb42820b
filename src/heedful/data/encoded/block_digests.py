"""
Digests of flat files, in blocks of 64 MiB.

A file that is mapped into memory is never read as a whole. Each block is compared with its digest
when a run first reads from it, so a changed block ends the run before anything uses it.
"""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from heedful.data.encoded.mapped_file import MappedFile
from heedful.errors import RunFolderError

BLOCK_BYTES = 64 << 20
"""Bytes that share a digest; a multiple of the size of every value."""
_DIGEST_BYTES = 16
# Offsets that are compared at once, so that little memory is needed.
_OFFSETS = 1 << 20


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
                    f"{where} must be as it was written, but its digest is another: the disk or a "
                    f"copy changed it; {self._again}."
                )
        if self._limit is not None and (highest := int(values.max())) >= self._limit:
            raise RunFolderError(
                f"{where} must contain ids below {self._limit:,}, the size of the vocabulary, but "
                f"has {highest:,}; {self._again}."
            )
        self._unread.discard(block)
