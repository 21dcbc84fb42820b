"""
Flat files for rows of different lengths, and folders written atomically.

One file holds the values of all rows end to end, the other where each row begins. Both are read
through the memory map, so that what is not used takes no memory.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedWriter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.encoded.block_digests import BlockDigests, CheckedValues, check_rising
from heedful.data.encoded.mapped_file import MappedFile
from heedful.errors import RunFolderError, StorageError
from heedful.files import sync

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
