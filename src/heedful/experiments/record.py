"""
Records: the measurements of a command, in one JSON schema.

A record names its commands, the machine and the commit, so the measurement can be repeated.
`outputs` holds the texts from which scores and intervals are computed, such as translations.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from heedful.errors import RunFolderError
from heedful.files import make_folder, read_text_within, replacing_file
from heedful.machine.devices import describe_machine

Parsed = TypeVar("Parsed")
_ORDER = ("commit", "date", "machine", "commands", "settings", "measurements", "outputs")


@dataclass(frozen=True)
class Record:
    """Measurements and their origin."""

    commit: str
    """The commit whose code was measured; empty for an installed package."""
    machine: str
    measurements: dict[str, Any]
    commands: list[str] = field(default_factory=list)
    """The commands as typed in a shell."""
    date: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    settings: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    """Texts from which scores and intervals are computed."""

    @classmethod
    def read(cls, path: Path) -> "Record":
        """Read a record; raises `RunFolderError` if the file is not a record."""
        return read_json(
            path, "be a record of measurements", lambda plain: cls(**{"commit": "", **plain})
        )

    def write(self, path: Path) -> None:
        """Write the record without empty fields."""
        make_folder(path.parent)
        write_json(path, {name: value for name in _ORDER if (value := asdict(self)[name])})

    @property
    def origin(self) -> str:
        """Machine, commit and date, for the end of a page."""
        return f"Machine: {self.machine}. Commit {self.commit}, {self.date}."


def read_json(path: Path, content: str, parse: Callable[[Any], Parsed]) -> Parsed:
    """Read a JSON file; `content` completes the error “PATH must …”, such as “contain scores”."""
    try:
        return parse(json.loads(read_text_within(path)))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise RunFolderError(
            f"{path} must {content}, but cannot be read ({error}); delete it and run the command "
            "again."
        ) from error


def write_json(path: Path, plain: Any) -> None:
    """Write values as JSON."""
    with replacing_file(path) as stream:
        stream.write(json.dumps(plain, indent=1, ensure_ascii=False) + "\n")


def describe_this_machine() -> str:
    """Describe processor, memory, GPUs and versions in one line."""
    parts: dict[str, Any] = describe_machine()
    cores = parts["cores"]
    gpus = ", ".join(parts["gpus"]) or "no GPU"
    return (
        f"{parts['processor']}, {cores} core{'s' * (cores != 1)}, "
        f"{parts['memory_bytes'] / (1 << 30):.0f} GiB, {gpus}; Python {parts['python']}, torch "
        f"{parts['torch']}"
    )
