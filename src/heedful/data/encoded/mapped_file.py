"""
Flat files that are mapped into memory.

The system keeps of a mapped file what is used and drops the rest. Reading behind its end is no
error that a program can catch: if someone cuts the file off, the process dies by SIGBUS. So its
size is compared before each batch and each block is read.
"""

import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.errors import RunFolderError
from heedful.files import open_ordinary


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
