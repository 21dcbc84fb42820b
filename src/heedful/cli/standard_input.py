"""Lines from standard input."""

import os
from collections.abc import Iterator
from pathlib import Path

from heedful.errors import TextError
from heedful.text.lines import LONGEST_LINE

STDIN = Path("-")
"""The name of stdin where a file is expected."""


def standard_input() -> Iterator[bytes]:
    """
    Read lines from the file descriptor itself; refuse a closed descriptor at once.

    A thread that waits for input in `sys.stdin.buffer` holds the buffer's lock. Python aborts if it
    exits while the lock is held: for example on Ctrl-C, or because the program that reads the
    output has ended.
    """
    try:
        os.read(0, 0)
    except OSError as error:
        raise TextError(
            "the text must come from stdin, but stdin is closed; name a file instead."
        ) from error
    return _lines()


def _lines() -> Iterator[bytes]:
    """Split standard input into lines, and lines beyond the size limit into parts."""
    parts: list[bytes] = []  # parts of a line whose end has not been read yet
    size = 0
    while part := os.read(0, 1 << 16):
        first, *lines = part.split(b"\n")
        parts.append(first)
        size += len(first)
        if lines or size > LONGEST_LINE:
            yield b"".join(parts) + b"\n" * bool(lines)
            *complete, last = lines or [b""]
            yield from (line + b"\n" for line in complete)
            parts, size = [last], len(last)
    if size:
        yield b"".join(parts)
