"""
Text files read as lines: unpacked, decoded, and checked for binary content.

Text is read as a stream, plain or compressed, and split at line feeds only. Other line breaks of
`str.splitlines` (U+2028, form feed, a lone carriage return, …) are text. Invalid text (a broken
encoding, a NUL) is reported with file, line and byte. The length of a line is limited, because a
small compressed file may hold a line that fills all memory.

Byte tokens let a model write any character, so stricter rules apply to the lines that a model
writes. These lines have no control characters except the tab, and no characters at which other
programs end a line.
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from io import BufferedReader
from pathlib import Path

from heedful.errors import TextError
from heedful.text.compression import DAMAGED, open_unpacked, unpacking_command

LONGEST_LINE = 1 << 24
"""Maximum number of bytes in a line, its end included."""

_BYTE_ORDER_MARK = "\ufeff"
# C0 without the tab, DEL and C1, which move a terminal's cursor; the separators of lines and
# paragraphs; the byte order mark, which readers drop at the start of a file.
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
_UNEVEN_SPACE = re.compile(r"[ \t\r\n]{2,}|[\t\r\n]")


@contextmanager
def open_text(path: Path) -> Iterator[BufferedReader]:
    """
    Open a file, and unpack it according to its first bytes.

    Errors while reading are converted too, so all problems with a file are reported in the same
    way.

    Raises `TextError` if the file cannot be opened or read, or is damaged.
    """
    try:
        with ExitStack() as stack:
            yield open_unpacked(path, stack)
    except DAMAGED as error:
        raise _damage_error(path, error) from error
    except OSError as error:
        if error.errno is None:  # bz2 reports damage with a plain OSError
            raise _damage_error(path, error) from error
        raise TextError(
            f"{path} must be a text file that can be read, but the system says "
            f"“{error.strerror or error}”; correct the name or the permissions."
        ) from error


def _damage_error(path: Path, error: Exception) -> TextError:
    """Build the error for a compressed file that cannot be unpacked."""
    return TextError(
        f"{path} must be a complete compressed file, but it is cut off or damaged ({error}); "
        "download or compress it again."
    )


def plain_lines(path: Path) -> Iterator[str]:
    """
    Read every line of a file, whatever format its suffix suggests.

    This is for files whose format is known: a word list may be called ``.tsv`` but has no columns
    to choose.

    Raises `TextError` if the file cannot be read or is not text.
    """
    with open_text(path) as stream:
        yield from decode_lines(stream, str(path))


def two_columns(path: Path, what: str, comment: str = "") -> Iterator[tuple[int, str, str]]:
    """
    Read lines that hold a word or term, a tab and its translation; yields each with its number.

    `what`: a name of the first column, for messages. `comment`: the beginning of lines that are
    skipped, as empty lines are.

    Raises `TextError` with the number of a line that does not have this form.
    """
    for number, line in enumerate(plain_lines(path), start=1):
        if not line.strip() or (comment and line.startswith(comment)):
            continue
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) != 2 or not all(columns):
            raise TextError(
                f"{path} must hold a {what}, a tab and its translation in every line, but line "
                f"{number} is {line!r}; correct it."
            )
        yield number, columns[0], columns[1]


def decode_lines(stream: Iterable[bytes], name: str) -> Iterator[str]:
    """
    Decode the lines of a binary stream.

    A line ends at a line feed and nowhere else. One carriage return before it (Windows line ends)
    and a byte order mark at the start of the stream are dropped. At most `LONGEST_LINE` + 1 bytes
    are in memory.

    Raises `TextError` if a line is too long, is not UTF-8 or holds a NUL character.
    """
    for number, raw in enumerate(_raw_lines(stream), start=1):
        if len(raw) > LONGEST_LINE:
            raise TextError(
                f"{name} must have lines of at most {LONGEST_LINE:,} bytes, but line {number} is "
                "longer; write one sentence per line."
            )
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            if number == 1 and (command := unpacking_command(raw)):
                raise TextError(
                    f"{name} must be text, but its first bytes are those of a compressed file; "
                    f"unpack it first ({command})."
                ) from error
            raise TextError(
                f"{name} must be UTF-8 text, but line {number} holds the invalid byte "
                f"0x{raw[error.start]:02x} at offset {error.start}; convert the file (iconv -f "
                "LATIN1 -t UTF-8, or -f UTF-16) or repair it."
            ) from error
        if "\0" in line:
            raise TextError(
                f"{name} must be text, but line {number} holds a NUL character at offset "
                f"{raw.index(0)}; remove it, or convert the file if it is UTF-16."
            )
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        yield line.removesuffix("\n").removesuffix("\r")


def on_one_line(text: str) -> str:
    """Reduce runs of XML's white space to single spaces, and drop spaces at the ends."""
    # XML counts only these four characters as white space. Others, such as the no-break space
    # before a French colon, belong to the text.
    return _UNEVEN_SPACE.sub(" ", text).strip(" ")


def without_controls(text: str) -> tuple[str, int]:
    r"""
    Replace control characters and line ends with spaces; also return their number.

    >>> without_controls("le chien\r\ndort\x00")
    ('le chien  dort ', 3)
    """
    return _CONTROL.subn(" ", text)


def json_line(content: object) -> str:
    """Encode as JSON on one line; characters such as U+2028, which may end a line, are escaped."""
    text = json.dumps(content, ensure_ascii=False)
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _raw_lines(stream: Iterable[bytes]) -> Iterable[bytes]:
    """Iterate over lines; a line that is too long is cut one byte after the limit."""
    if isinstance(stream, BufferedReader):
        return iter(partial(stream.readline, LONGEST_LINE + 1), b"")
    return stream
