"""
Fill and delete folders so that nobody ever sees half of one.

A folder is filled or emptied under a name that begins with a dot: ``.NAME.partial`` is not yet
complete, ``.NAME.old`` makes room for its successor, ``.NAME.gone`` is being deleted.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heedful.data.files import sync, writing


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
