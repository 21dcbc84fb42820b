"""
Files that are whole or not there, and the SHA-256 that tell which file one has.

A list of them has the form of the program sha256sum, so `sha256sum -c SHA256SUMS` checks it too.
"""

import functools
import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

from heedful import files
from heedful.errors import TextError
from heedful.files import sync

SUMS = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64}) [ *]([^/\\\0]+)")

writing = functools.partial(files.writing, promise="it goes on from what is there")
"""Turn failures to write into one sentence."""


def publish_file(partial: Path, path: Path) -> None:
    """
    Give a finished file its name.

    Parameters
    ----------
    partial : Path
        The file, complete.
    path : Path
        Its name in the same file system; replaced if it is there.

    Returns
    -------
    None
        Nothing.

    Notes
    -----
    Synced before and after, so that not even a power cut leaves half a file under the name.
    """
    sync(partial)
    partial.replace(path)
    sync(path.parent)


def sha256_of(path: Path) -> str:
    """
    Compute the SHA-256 of a file.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    str
        64 hexadecimal digits.

    Raises
    ------
    TextError
        If it cannot be read.

    Notes
    -----
    Memory stays constant.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise TextError(
            f"{path} must be a file that can be read, but the system says "
            f"“{error.strerror or error}”; correct its permissions or move it away."
        ) from error


@dataclass
class Checksums:
    """
    Keep the SHA-256 of the files in a folder.

    Attributes
    ----------
    folder : Path
        The folder.
    title : str, default ''
        What the folder holds; a comment in the list.
    by_name : dict of str to str
        64 hexadecimal digits for each file name.

    Notes
    -----
    On the disk it is `SHA256SUMS`, sorted by name.
    """

    folder: Path
    title: str = ""
    by_name: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> "Checksums":
        """
        Read the list of a folder.

        Parameters
        ----------
        folder : Path
            The folder.

        Returns
        -------
        Checksums
            Empty if there is no list.

        Notes
        -----
        Lines of another form are passed over: names with folders, what an editor cut off.
        """
        try:
            lines = (folder / SUMS).read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            lines = []
        title = lines[0].removeprefix("# ") if lines and lines[0].startswith("# ") else ""
        found = filter(None, map(_LINE.fullmatch, lines))
        return cls(folder, title, {match[2]: match[1] for match in found})

    def write(self) -> None:
        """
        Write the list.

        Returns
        -------
        None
            Nothing.

        Raises
        ------
        StorageError
            If it cannot be written; the old list then stays.

        Notes
        -----
        The program sha256sum passes over the comment.
        """
        lines = [f"{sha256}  {name}" for name, sha256 in sorted(self.by_name.items())]
        beside = self.folder / f".{SUMS}.partial"
        with writing(self.folder):
            beside.write_text("\n".join([f"# {self.title}", *lines, ""]), encoding="utf-8")
            publish_file(beside, self.folder / SUMS)
