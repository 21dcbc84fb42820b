"""
The lines of a run's log, `log.jsonl`.

A log may still be growing, may end in the middle of a line if the process was killed, and may be
very long. So it is read as a stream.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from heedful.errors import RunFolderError
from heedful.files import open_ordinary


def read_entries(path: Path) -> Iterator[dict[str, Any] | None]:
    """
    Read a log line by line.

    Yields each entry, whose `step` is an integer, and None for each line that is not an entry.

    An incomplete last line is still being written, or was truncated when the process was killed.
    This line is skipped silently.

    Raises `RunFolderError` if the file does not exist or cannot be read.
    """
    try:
        with open_ordinary(path) as lines:
            for line in lines:
                entry = parse_line(line)
                if entry is not None or (line.endswith(b"\n") and not line.isspace()):
                    yield entry
    except OSError as error:
        raise RunFolderError(
            f"a run's log is needed, but {path} cannot be read: {error.strerror}; a run has a log "
            "as soon as `heedful train` takes its first steps."
        ) from error


def parse_line(line: bytes) -> dict[str, Any] | None:
    """Parse a line; returns None if it is not a line of a log."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    step = entry.get("step") if isinstance(entry, dict) else None
    return entry if type(step) is int and 0 <= step < 1 << 53 else None  # True is not a step
