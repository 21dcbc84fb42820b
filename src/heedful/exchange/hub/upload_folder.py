"""
Temporary folders of uploads, including folders that killed uploads left behind.

A process holds a lock on its folder while it fills and sends it. The system drops the lock when the
process ends, for any reason, so a folder that can be locked has lost its owner.
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
    """Make an empty folder that is deleted at the end; delete those of killed uploads first."""
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
    """Delete the folders of this user's uploads that were killed."""
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
        # It is locked or gone, so another process deletes it; any other error would recur.
        with suppress(BlockingIOError, FileNotFoundError):
            descriptor = _lock(folder)
            if is_at(folder, descriptor):
                return folder, descriptor
            os.close(descriptor)


def _lock(folder: Path) -> int:
    """Lock a folder, or raise `OSError` if another process has it; a link is not followed."""
    ways = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(folder, ways)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
