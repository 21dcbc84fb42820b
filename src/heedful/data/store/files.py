"""Write files so that a kill or a full disk never leaves half of one under its name."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter
from pathlib import Path


@contextmanager
def new_file(path: Path) -> Iterator[BufferedWriter]:
    """
    Open a new file that is on the disk when the block ends.

    Parameters
    ----------
    path : Path
        The file; it must not exist.

    Yields
    ------
    BufferedWriter
        The open file.

    Notes
    -----
    Not atomic by itself: for files in a folder that gets its name when all of them are there.
    """
    with path.open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def write_whole(path: Path, content: bytes) -> None:
    """
    Write a file beside its place and move it there when it is on the disk.

    Parameters
    ----------
    path : Path
        The file; replaced if it is there.
    content : bytes
        What to write.

    Returns
    -------
    None
        Nothing.

    Notes
    -----
    Each process writes beside under a name of its own, so two that write the same file do not
    meet. Raises `OSError` if it cannot be written; then nothing is left.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise


def sync_folder(folder: Path) -> None:
    """
    Bring the names in a folder to the disk.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    None
        Nothing.

    Notes
    -----
    A rename is safe only then.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
