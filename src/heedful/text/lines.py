"""
Files as lines: opened, decompressed, decoded, and told apart from what cannot be text.

Text is read as a stream, plain or compressed, and split at line feeds only: the other characters
that `str.splitlines` would break at (U+2028, form feed, a lone carriage return, …) are text. What
cannot be text (a broken encoding, a NUL) is reported with file, line and byte.
"""

import gzip
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path

from heedful.errors import TextError

_COMPRESSED = (".gz", ".xz")
_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)
_BYTE_ORDER_MARK = "\ufeff"
_UNEVEN_SPACE = re.compile(r"[ \t\r\n]{2,}|[\t\r\n]")


@contextmanager
def open_text(path: Path) -> Iterator[BufferedIOBase]:
    """
    Open a file, decompressed if its ending says so.

    Parameters
    ----------
    path : Path
        A file, plain or compressed (``.gz``, ``.xz``).

    Yields
    ------
    BufferedIOBase
        Its bytes.

    Raises
    ------
    TextError
        If the file cannot be opened or read, or is damaged.

    Notes
    -----
    Whatever goes wrong while the file is read goes wrong inside, so that it is said in one way.
    """
    try:
        with _open(path) as stream:
            yield stream
    except _DAMAGED as error:
        raise TextError(
            f"{path} must be a whole {path.suffix} file, but it is cut off or damaged "
            f"({error}); fetch or compress it again."
        ) from error
    except OSError as error:
        raise TextError(
            f"{path} must be a text file that can be read, but the system says "
            f"“{error.strerror or error}”; correct the name or its permissions."
        ) from error


def plain_lines(path: Path) -> Iterator[str]:
    """
    Read every line of a file, whatever its ending says of its format.

    Parameters
    ----------
    path : Path
        A UTF-8 file, plain or compressed.

    Yields
    ------
    str
        A line without its line end.

    Raises
    ------
    TextError
        If the file cannot be read or is no text.

    Notes
    -----
    For files whose format the program knows: lists that may well be called ``.tsv``, of which no
    column is meant.
    """
    with open_text(path) as stream:
        yield from decode_lines(stream, str(path))


def decode_lines(stream: Iterable[bytes], name: str) -> Iterator[str]:
    """
    Decode the lines of a binary stream.

    Parameters
    ----------
    stream : iterable of bytes
        Lines that end at a line feed, as every binary file object yields them.
    name : str
        What to call the stream in messages: a path, or “standard input”.

    Yields
    ------
    str
        A line without its line end.

    Raises
    ------
    TextError
        If a line is not UTF-8 or holds a NUL character.

    Notes
    -----
    A line ends at a line feed and nowhere else. One carriage return before it (Windows line ends)
    and a byte order mark at the start of the stream are dropped.
    """
    for number, raw in enumerate(stream, start=1):
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise TextError(
                f"{name} must be UTF-8 text, but line {number} holds the byte "
                f"0x{raw[error.start]:02x} at offset {error.start}, which UTF-8 does not allow "
                "there; convert the file (iconv -f LATIN1 -t UTF-8, or -f UTF-16) or repair it."
            ) from error
        if "\0" in line:
            raise TextError(
                f"{name} must be text, but line {number} holds a NUL character at offset "
                f"{raw.index(0)}; remove it, or convert the file if it is UTF-16."
            )
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        yield line.removesuffix("\n").removesuffix("\r")


def without_compression(path: Path) -> Path:
    """
    Take the ending of a compressed file off its name.

    Parameters
    ----------
    path : Path
        A file such as ``train.en.gz``.

    Returns
    -------
    Path
        ``train.en``; a name without such an ending as it is.

    Notes
    -----
    What a file holds is told by the ending before.
    """
    return path.with_suffix("") if path.suffix in _COMPRESSED else path


def on_one_line(text: str) -> str:
    """
    Collapse white space.

    Parameters
    ----------
    text : str
        Text out of a format where a line may end anywhere.

    Returns
    -------
    str
        With one space for each run of spaces, tabs, carriage returns and line feeds, and none at
        its ends.

    Notes
    -----
    These four are what XML calls white space. Others, such as the no-break space before a French
    colon, belong to the text.
    """
    return _UNEVEN_SPACE.sub(" ", text).strip(" ")


def _open(path: Path) -> BufferedIOBase:
    """Open a file for reading bytes."""
    if path.suffix == ".gz":
        return gzip.open(path, "rb")
    if path.suffix == ".xz":
        return lzma.open(path, "rb")
    return path.open("rb")
