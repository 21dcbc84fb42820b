"""
Write files so that a kill or a full disk never leaves half of one under its name.

What is written beside, synced and then renamed is whole or not there. `heedful.files`
does the same for folders.

Fill and delete folders so that nobody ever sees half of one.

A folder is filled or emptied under a name that begins with a dot: ``.NAME.partial`` is not yet
complete, ``.NAME.old`` makes room for its successor, ``.NAME.gone`` is being deleted.
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter
from pathlib import Path
from typing import BinaryIO, TextIO

from heedful.errors import StorageError

INTACT = "what was written before is intact"
"""What `writing` promises by itself."""


def open_ordinary(path: Path) -> BinaryIO:
    """Open a file that others made; raises `OSError` where it is none."""
    # Opening a pipe would wait, and reading a link to a device never end.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "rb")
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return file
    file.close()
    raise OSError(errno.EINVAL, "it is no ordinary file", str(path))


def read_within(path: Path, most: int = 1 << 28) -> bytes:
    """Read a file that others made, of at most so many bytes; raises `OSError` for larger ones."""
    with open_ordinary(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise OSError(errno.EFBIG, f"it is larger than {most:,} bytes", str(path))
        return file.read(size)


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


def write_synced(path: Path, content: bytes | memoryview) -> None:
    """
    Write bytes and wait until they are on the disk.

    Parameters
    ----------
    path : Path
        The file.
    content : bytes
        What to write.

    Returns
    -------
    None
        Nothing.

    Notes
    -----
    Not atomic by itself: write beside and rename. A link is not followed.
    """
    # A link in a folder that others made would lead to any file of the user's.
    ways = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, ways, 0o666), "wb") as file:
        file.write(content)
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
        write_synced(beside, content)
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise


@contextmanager
def replacing_file(path: Path) -> Iterator[TextIO]:
    """
    Write text beside a file and move it there when the block ends without an error.

    A device, a pipe or what else is no ordinary file is written through.
    """
    ordinary = path.is_file() or not path.exists()
    if not ordinary or path.absolute().parts[1:2] in (("dev",), ("proc",)):
        with path.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream
        return
    place = path.resolve()  # a link stays a link
    beside = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    try:
        with beside.open("x", encoding="utf-8", newline="\n") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if place.exists():
            beside.chmod(place.stat().st_mode & 0o777)
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """
    Wait until a file, or the names in a folder, are on the disk.

    Parameters
    ----------
    path : Path
        The file or the folder.

    Returns
    -------
    None
        Nothing.

    Notes
    -----
    A rename is safe only between the two.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def writing(folder: Path, promise: str = INTACT) -> Iterator[None]:
    """
    Turn failures to write into one sentence.

    Parameters
    ----------
    folder : Path
        Where is being written, for the message.
    promise : str, optional
        How the message ends: what is left of the work.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    StorageError
        If the disk is full or the folder cannot be written.

    Notes
    -----
    Every `OSError` counts, so nothing but writing belongs into the block.
    """
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"cannot write to {folder}: {error.strerror or error}. Free some space or mend the "
            f"permissions and run the command again; {promise}."
        ) from error


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """
    Fill a folder beside its place and move it there when it is complete.

    Parameters
    ----------
    folder : Path
        Where it will be; replaced if it is there.

    Yields
    ------
    Path
        An empty folder to fill.

    Notes
    -----
    Nothing is left behind if filling fails.
    """
    beside = folder.with_name(f".{folder.name}.partial")
    with writing(folder):
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        try:
            yield beside
            sync(beside)
            old = folder.with_name(f".{folder.name}.old")
            shutil.rmtree(old, ignore_errors=True)
            if folder.exists():
                folder.rename(old)
            beside.rename(folder)
            sync(folder.parent)
            shutil.rmtree(old, ignore_errors=True)
        finally:
            tidy(folder.parent)


def tidy(parent: Path) -> None:
    """
    Undo what a killed process left half done in a folder.

    Parameters
    ----------
    parent : Path
        The folder that holds what `replacing` replaces.

    Returns
    -------
    None
        Nothing.

    Notes
    -----
    A folder that was moved away and not yet replaced comes back; half-filled ones go.
    """
    if not parent.is_dir():
        return
    for entry in sorted(parent.iterdir()):
        if not entry.name.startswith(".") or not entry.is_dir():
            continue
        name, _, state = entry.name[1:].rpartition(".")
        if state == "old" and not (parent / name).exists():
            entry.rename(parent / name)
        elif state in ("old", "partial", "gone"):
            shutil.rmtree(entry, ignore_errors=True)


def remove_folder(folder: Path) -> None:
    """
    Delete a folder so that nobody ever sees half of it.

    Parameters
    ----------
    folder : Path
        What to delete.

    Returns
    -------
    None
        Nothing.

    Notes
    -----
    It loses its name first; what a killed process leaves behind is swept by `tidy`.
    """
    gone = folder.with_name(f".{folder.name}.gone")
    shutil.rmtree(gone, ignore_errors=True)
    folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)
