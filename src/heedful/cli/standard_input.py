"""Lines from standard input."""

import os
from collections.abc import Iterator
from pathlib import Path

from heedful.errors import TextError

STDIN = Path("-")
"""How stdin is named where a file is expected."""


def standard_input() -> Iterator[bytes]:
    """
    Read lines from the file descriptor itself; refuse a closed one at once.

    A thread that waits in `sys.stdin.buffer` holds its lock, and Python aborts if it must exit
    while a thread waits there: at Ctrl-C, or when the reader of the output is gone.
    """
    try:
        os.read(0, 0)
    except OSError as error:
        raise TextError(
            "the text must come from stdin, but stdin is closed; name a file instead."
        ) from error
    return _lines()


def _lines() -> Iterator[bytes]:
    """Split what comes from standard input into lines."""
    rest = b""
    while part := os.read(0, 1 << 16):
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield line + b"\n"
    if rest:
        yield rest
