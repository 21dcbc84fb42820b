"""
A lock file that allows only one writer to a folder.

The operating system keeps the lock (flock), so the lock ends with its process, even after a crash.
On a network file system the lock works only if it is sent to the server. Linux does so over NFS;
other systems may not.
"""

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from heedful.errors import RunFolderError
from heedful.files import is_at, read_within, writing

LOCK = ".lock"
"""The file that names the process that writes to the folder; deleted unless the process crashes."""

# The file is overwritten, so it must not be a link or a pipe that another user created.
_NEVER_FOLLOW = os.O_NOFOLLOW | os.O_NONBLOCK


@contextmanager
def only_writer(folder: Path, command: str) -> Iterator[None]:
    """Lock a folder for this process; raises `RunFolderError` if another process writes to it."""
    path = folder / LOCK
    with writing(folder):
        descriptor = _open_locked(path)
    try:
        holder = {
            "host": socket.gethostname(),
            "process": os.getpid(),
            "since": datetime.now(UTC).isoformat(" ", "seconds"),
            "command": command,
        }
        with writing(folder):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, json.dumps(holder).encode())
        yield
    finally:
        with suppress(OSError):
            if is_at(path, descriptor):
                path.unlink()
        os.close(descriptor)


def refuse_if_written(folder: Path) -> None:
    """Refuse a folder to which another process is writing; creates no files."""
    with suppress(OSError):
        descriptor = os.open(folder / LOCK, os.O_RDWR | _NEVER_FOLLOW)
        try:
            _lock(folder / LOCK, descriptor)
        finally:
            os.close(descriptor)


def _open_locked(path: Path) -> int:
    """Open and lock the file at `path`, even if it is replaced in the meantime."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NEVER_FOLLOW, 0o666)
        try:
            _lock(path, descriptor)
        except RunFolderError:
            os.close(descriptor)
            raise
        if is_at(path, descriptor):
            return descriptor
        os.close(descriptor)  # the other process has just removed the file


def _lock(path: Path, descriptor: int) -> None:
    """Lock an open file, or report the process that has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise RunFolderError(
            f"{path.parent} must have one writer at a time, but {_holder(path)} is writing into "
            "it. Wait until that process has ended, or name another folder."
        ) from error
    except OSError:
        pass  # the file system does not support locks


def _holder(path: Path) -> str:
    """Describe the process that holds a lock."""
    try:
        holder = json.loads(read_within(path))
        return (
            f"heedful {holder['command']} (process {holder['process']} on {holder['host']}, since "
            f"{holder['since']})"
        )
    except (OSError, ValueError, TypeError, KeyError):
        return "another process"
