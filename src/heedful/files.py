"""
Atomic writes of files and folders: no partial file gets its final name, even after a kill.

Each file is written under a temporary name, synced and then renamed, so it is complete or absent.
The same holds for folders.

A folder is filled or emptied under a name that begins with a dot. ``.NAME.partial`` is incomplete,
``.NAME.old`` is being replaced, and ``.NAME.gone`` is being deleted.
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import TextIO

from heedful.errors import StorageError

INTACT = "files written earlier are intact"
"""The text that ends an error message of `writing`, unless the caller passes another text."""


def open_ordinary(path: Path) -> BufferedReader:
    """Open an untrusted regular file; raise `OSError` for anything else."""
    # Opening a pipe would block, and reading a device might never end.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "rb")
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return file
    file.close()
    raise OSError(errno.EINVAL, "it is not an ordinary file", str(path))


def read_within(path: Path, most: int = 1 << 28) -> bytes:
    """Read an untrusted file up to a size limit; raise `OSError` for a larger one."""
    with open_ordinary(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise OSError(errno.EFBIG, f"it is larger than {most:,} bytes", str(path))
        return file.read(size)


def read_text_within(path: Path, most: int = 1 << 28) -> str:
    """Read an untrusted UTF-8 file; raise `UnicodeDecodeError` or the errors of `read_within`."""
    return read_within(path, most).decode("utf-8-sig")


def is_at(path: Path, descriptor: int) -> bool:
    """Return whether a path still refers to the file that a descriptor has open."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextmanager
def new_file(path: Path) -> Iterator[BufferedWriter]:
    """
    Open a new file that is synced to disk when the block ends.

    Not atomic by itself, but intended for files in a folder that is renamed when it is complete.
    """
    with path.open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def write_synced(path: Path, content: bytes | memoryview) -> None:
    """
    Write bytes and sync them to disk.

    Not atomic by itself: write a temporary file and rename it. Links are not followed.
    """
    # A link in a folder of another user could lead to any file of this user.
    ways = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, ways, 0o666), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_whole(path: Path, content: bytes, alone: bool = False) -> None:
    """
    Write a file atomically.

    `alone`: whether no other process writes into the folder; then a temporary file of a killed
    process is overwritten. Otherwise each process has a temporary name of its own, so two writers
    of the same file do not collide.

    If the file cannot be written, raises an `OSError` that names `path`, and leaves no temporary
    file.
    """
    own = "" if alone else f".{os.getpid()}"
    temporary_file = path.with_name(f".{path.name}{own}.partial")
    try:
        with _naming(path, temporary_file):
            write_synced(temporary_file, content)
            temporary_file.replace(path)
    except BaseException:  # also Ctrl-C
        with suppress(OSError):
            temporary_file.unlink()
        raise


@contextmanager
def replacing_file(path: Path) -> Iterator[TextIO]:
    """
    Replace a text file atomically when the block ends without an error.

    Devices, pipes and other special files are written directly. An `OSError` names `path`.
    """
    ordinary = path.is_file() or not path.exists()
    if not ordinary or path.absolute().parts[1:2] in (("dev",), ("proc",)):
        with _naming(path), path.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream
        return
    place = path.resolve()  # a link stays a link
    # The name is random, because in a container a process may get the ID of a killed process.
    temporary_file = place.with_name(f".{place.name}.{os.urandom(4).hex()}.tmp")
    try:
        with _naming(path, temporary_file):
            with temporary_file.open("x", encoding="utf-8", newline="\n") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            if place.exists():
                temporary_file.chmod(place.stat().st_mode & 0o777)
            temporary_file.replace(place)
    finally:
        with suppress(OSError):  # the folder may be missing, or may be a file
            temporary_file.unlink(missing_ok=True)


@contextmanager
def _naming(path: Path, temporary_file: Path | None = None) -> Iterator[None]:
    """Put the path into an `OSError` that names no file, or only the temporary file."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename in (None, str(temporary_file)):
            error.filename = str(path)
        raise


def make_folder(folder: Path) -> None:
    """Create a folder unless it exists; raise `StorageError` if it cannot be created."""
    while True:
        try:
            return folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            # it existed, and another process deleted it before Python saw that it was a folder
            if isinstance(error, FileExistsError) and (
                folder.is_dir() or not os.path.lexists(folder)
            ):
                continue
            raise StorageError(
                f"{folder} must be a new or existing folder, but the system says "
                f"“{error.strerror or error}”; name another folder, or change the permissions."
            ) from error


def sync(path: Path) -> None:
    """Sync a file, or a folder's entries, to disk; a safe rename needs a sync before and after."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ADVICE = {
    **dict.fromkeys(_FULL, "Free some space"),
    **dict.fromkeys((errno.EACCES, errno.EPERM), "Change the permissions"),
}
"""What to do after a write error, by the error's number."""


@contextmanager
def writing(folder: Path, promise: str = INTACT) -> Iterator[None]:
    """
    Turn write errors into `StorageError`.

    Every `OSError` counts as a write error, so the block must contain nothing but writing.

    Raises `StorageError` if the disk is full or the folder cannot be written.
    """
    try:
        yield
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "Name another place")
        raise StorageError(
            f"cannot write to {folder}: {error.strerror or error}. {advice} and run the command "
            f"again; {promise}."
        ) from error


@contextmanager
def replacing(folder: Path, promise: str = INTACT) -> Iterator[Path]:
    """Fill a folder under a temporary name and rename it when it is complete."""
    temporary_folder = folder.with_name(f".{folder.name}.partial")
    with writing(folder, promise):
        shutil.rmtree(temporary_folder, ignore_errors=True)
        temporary_folder.mkdir(parents=True)
        try:
            yield temporary_folder
            sync(temporary_folder)
            old = folder.with_name(f".{folder.name}.old")
            shutil.rmtree(old, ignore_errors=True)
            if folder.exists():
                folder.rename(old)
            temporary_folder.rename(folder)
            sync(folder.parent)
            shutil.rmtree(old, ignore_errors=True)
        finally:
            # only this folder, because other processes may be filling other folders there
            tidy(folder.parent, folder.name)


def tidy(parent: Path, only: str = "") -> None:
    """
    Clean up the unfinished changes of a killed process in a folder.

    A folder that was moved away and not yet replaced is restored; partial folders are deleted.
    `only`: the name of the only folder to clean up; empty for all.
    """
    if not parent.is_dir():
        return
    for entry in sorted(parent.iterdir()):
        if not entry.name.startswith(".") or not entry.is_dir():
            continue
        name, _, state = entry.name[1:].rpartition(".")
        if only not in ("", name):
            continue
        if state == "old" and not (parent / name).exists():
            entry.rename(parent / name)
        elif state in ("old", "partial", "gone"):
            shutil.rmtree(entry, ignore_errors=True)


def remove_folder(folder: Path) -> None:
    """
    Delete a folder atomically.

    The folder is renamed first; after a kill, `tidy` deletes the rest. A link is deleted, not its
    target.
    """
    if folder.is_symlink():
        folder.unlink()
        return
    gone = folder.with_name(f".{folder.name}.gone")
    shutil.rmtree(gone, ignore_errors=True)
    folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)
