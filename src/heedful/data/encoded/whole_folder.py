"""Folders of data that are written atomically, and replaced only if this program wrote them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heedful.errors import RunFolderError
from heedful.files import INTACT, replacing, writing


@contextmanager
def whole_folder(folder: Path, mark: str, promise: str = INTACT) -> Iterator[Path]:
    """
    Fill a folder atomically, and remove files that a killed process left.

    `mark`: name of a file that only folders of this kind have; such a folder may be replaced.
    `promise`: the end of the message if writing fails.

    Raises `StorageError` if the disk is full or the folder cannot be written, `RunFolderError` if
    `folder` holds something else.
    """
    with writing(folder, promise):
        taken = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
        is_own = (folder / mark).is_file()
    if taken and not is_own:
        raise RunFolderError(
            f"{folder} must be a new or empty folder, but it has other content; choose another "
            "folder or move this one away."
        )
    with replacing(folder, promise) as partial:
        yield partial
