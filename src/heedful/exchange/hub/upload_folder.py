"""
Temporary folders for uploads, including folders that killed uploads left behind.

A process locks its folder while it fills and uploads it. The system removes the lock when the
process ends for any reason, so a folder that can be locked is abandoned.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir, mkdtemp

from heedful.files import is_at, writing

_PREFIX = "heedful-push-"


@contextmanager
def upload_folder() -> Iterator[Path]:
    """Make an empty folder that is deleted at the end; first delete folders of killed uploads."""
    remove_abandoned()
    place = Path(gettempdir())
    with writing(place):
        folder, descriptor = _locked_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def remove_abandoned() -> None:
    """Delete the folders of this user's killed uploads."""
    with suppress(OSError):
        for folder in Path(gettempdir()).glob(f"{_PREFIX}*"):
            with suppress(OSError):  # of another user, in use, or deleted meanwhile
                descriptor = _lock(folder)
                try:
                    if os.fstat(descriptor).st_uid == os.geteuid():
                        shutil.rmtree(folder)
                finally:
                    os.close(descriptor)


def _locked_folder() -> tuple[Path, int]:
    """Make and lock a folder; another process may delete it before it is locked."""
    while True:
        folder = Path(mkdtemp(prefix=_PREFIX))
        # With these errors, another process deletes the folder; any other error would recur.
        with suppress(BlockingIOError, FileNotFoundError):
            descriptor = _lock(folder)
            if is_at(folder, descriptor):
                return folder, descriptor
            os.close(descriptor)


def _lock(folder: Path) -> int:
    """Lock a folder, or raise `OSError` if another process has locked it; links are refused."""
    ways = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(folder, ways)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
