"""
Atomic file writes and SHA-256 checksums.

Lists of checksums have the format of the program sha256sum, so `sha256sum -c SHA256SUMS` works too.
"""

import functools
import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

from heedful import files
from heedful.errors import TextError
from heedful.files import open_ordinary, read_within, sync, write_whole

SUMS = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64}) [ *]([^/\\\0]+)")

writing = functools.partial(files.writing, promise="it continues from the part that was downloaded")
"""A context manager that reports a failure to write in one sentence."""


def publish_file(partial: Path, path: Path) -> None:
    """Rename a finished file to its final name."""
    # The file is synced before and after, so that not even a power failure leaves half a file under
    # the final name.
    sync(partial)
    partial.replace(path)
    sync(path.parent)


def sha256_of(path: Path) -> str:
    """
    Compute the SHA-256 of a file, in constant memory.

    Raises `TextError` if the file cannot be read.
    """
    try:
        with open_ordinary(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise TextError(
            f"{path} must be a file that can be read, but the system says "
            f"“{error.strerror or error}”; correct its permissions or move it away."
        ) from error


@dataclass
class Checksums:
    """The SHA-256 checksums of the files in a folder; stored in `SHA256SUMS`, sorted by name."""

    folder: Path
    title: str = ""
    """The name of the folder's corpus, written as a comment in the list."""
    by_name: dict[str, str] = field(default_factory=dict)
    """Each file's checksum by name, as 64 hexadecimal digits."""

    @classmethod
    def read(cls, folder: Path) -> "Checksums":
        """Read the checksums of a folder."""
        # Malformed lines are skipped: names with folders, lines cut off by an editor.
        try:
            lines = read_within(folder / SUMS).decode(errors="replace").split("\n")
        except OSError:
            lines = []
        title = lines[0].removeprefix("# ") if lines and lines[0].startswith("# ") else ""
        matches = filter(None, map(_LINE.fullmatch, lines))
        return cls(folder, title, {match[2]: match[1] for match in matches})

    def write(self) -> None:
        """
        Write the checksums.

        The program sha256sum ignores the comment.

        Raises `StorageError` if the list cannot be written; the old list is then kept.
        """
        lines = [f"{sha256}  {name}" for name, sha256 in sorted(self.by_name.items())]
        content = "\n".join([f"# {self.title}", *lines, ""])
        with writing(self.folder):
            write_whole(self.folder / SUMS, content.encode(), alone=True)
            sync(self.folder)
