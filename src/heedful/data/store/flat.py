"""
Rows of different lengths in two flat files, and folders that are whole or not there.

One file holds the values of all rows end to end, the other where each row begins. Both are read
through the memory map, so that what is not used takes no memory.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.files import sync
from heedful.errors import RunFolderError, StorageError

_OFFSET = np.dtype("<i8")


class FlatWriter:
    """
    Appends rows.

    Parameters
    ----------
    values : BufferedWriter
        Gets the values.
    offsets : BufferedWriter
        Gets where each row begins, and where the last one ends.

    Notes
    -----
    Offsets count values, not bytes.
    """

    def __init__(self, values: BufferedWriter, offsets: BufferedWriter) -> None:
        self.total = 0
        self._values = values
        self._offsets = offsets
        self._offsets.write(np.zeros(1, _OFFSET).tobytes())

    def append(self, values: bytes, lengths: NDArray[np.integer[Any]]) -> None:
        """
        Write rows after those that are there.

        Parameters
        ----------
        values : bytes
            The values of the rows, end to end.
        lengths : ndarray of int, shape (rows,)
            How many values each row has.

        Returns
        -------
        None
            Nothing.

        Notes
        -----
        A row may be empty.
        """
        ends = self.total + lengths.cumsum(dtype=_OFFSET)
        self._values.write(values)
        self._offsets.write(ends.tobytes())
        self.total = int(ends[-1]) if len(ends) else self.total


def map_flat(
    values: Path, offsets: Path, dtype: np.dtype[Any], again: str
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """
    Map rows into memory.

    Parameters
    ----------
    values : Path
        The file of values.
    offsets : Path
        The file of offsets.
    dtype : dtype
        Type of a value.
    again : str
        What to do if they are damaged, for the message.

    Returns
    -------
    values : ndarray, shape (values,)
        The values of all rows.
    offsets : ndarray of int64, shape (rows + 1,)
        Where each row begins, and the end of the last.

    Raises
    ------
    RunFolderError
        If a file is missing or cut off.

    Notes
    -----
    Only sizes are checked: opening must not read the text.
    """
    arrays = []
    for path, item in ((values, dtype), (offsets, _OFFSET)):
        try:
            count, rest = divmod(path.stat().st_size, item.itemsize)
            if rest:
                raise RunFolderError(
                    f"{path} must hold whole numbers, but it was cut off; {again}."
                )
            # An empty file cannot be mapped; a plain view is read ten times as fast as a memmap.
            mapped = np.memmap(path, item, mode="r", shape=(count,)) if count else np.empty(0, item)
            arrays.append(mapped.view(np.ndarray))
        except OSError as error:
            raise RunFolderError(
                f"{path} must be a file that can be read, but the system says "
                f"“{error.strerror or error}”; {again}."
            ) from error
    if not len(arrays[1]) or arrays[1][0] != 0 or arrays[1][-1] != len(arrays[0]):
        raise RunFolderError(
            f"{offsets} must lead through the {len(arrays[0]):,} values of {values.name}, but it "
            f"does not: one of them is damaged; {again}."
        )
    return arrays[0], arrays[1]


@contextmanager
def whole_folder(folder: Path, mark: str) -> Iterator[Path]:
    """
    Make a folder that is whole or not there.

    Parameters
    ----------
    folder : Path
        Its parents are made; a folder of the same kind is replaced.
    mark : str
        A file by which a folder of that kind is known.

    Yields
    ------
    Path
        A hidden folder beside, to be filled; it takes the name when the block ends.

    Raises
    ------
    StorageError
        If the disk is full or the folder cannot be written.
    RunFolderError
        If `folder` holds something else.

    Notes
    -----
    What a killed process left is cleared away first.
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
