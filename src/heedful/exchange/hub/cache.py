"""
Models from the hub, converted and stored on this machine.

::

    CACHE/ORG--NAME/pins.json            the commit of each named revision
    CACHE/ORG--NAME/.lock                locked while a model is converted
    CACHE/ORG--NAME/COMMIT/NAME/         a run folder; its hub.json records its origin

CACHE is `heedful/hub` in the user's cache folder, usually `~/.cache`, or `$HF_HOME/heedful` if
HF_HOME is set. A run gets its final name after its conversion, so every run in the cache is
complete. Downloaded files stay in the cache of huggingface_hub, which other programs share.

A revision is pinned at its first use: later uses need no network and return the same model, until
the user runs `heedful hub update`. A damaged pins.json or hub.json is reported and counts as
missing.
"""

import fcntl
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import RunFolderError, StorageError
from heedful.files import is_at, make_folder, remove_folder, tidy, writing
from heedful.machine.processor import cache_folder
from heedful.runs.folder import read_json, write_json
from heedful.runs.hub_names import RECORD, HubName

CONVERSION = 1
"""Version of the conversion; a run of an earlier version is converted again."""
COMMIT = re.compile(r"[0-9a-f]{40}")
"""Pattern of a commit's full hash."""
_PINS, _LOCK = "pins.json", ".lock"
_DAMAGED: set[Path] = set()


def hub_cache() -> Path:
    """Return the folder of the cache, which may not exist yet."""
    home = os.environ.get("HF_HOME")
    if home:
        return Path(os.path.expandvars(home)).expanduser() / "heedful"
    try:
        return cache_folder() / "hub"
    except OSError as error:
        raise StorageError(
            f"the cache of converted models needs a folder that you own, but has none: {error}. "
            "Set HF_HOME to such a folder."
        ) from error


@dataclass(frozen=True)
class CachedModel:
    """A converted model."""

    name: HubName
    """Name of the model, with the commit as its revision."""
    run: Path
    """Run folder of the model."""
    record: Mapping[str, Any]
    """Content of hub.json."""
    pinned: tuple[str, ...]
    """Revisions that are pinned to this commit."""

    @property
    def bytes(self) -> int:
        """Total size of the files in the run folder."""
        return sum(path.stat().st_size for path in self.run.rglob("*") if path.is_file())


class ModelCache:
    """The converted commits of one model."""

    def __init__(self, repo: str) -> None:
        self.repo = repo
        self.folder = hub_cache() / repo.replace("/", "--")

    def pins(self) -> dict[str, str]:
        """Read the commit of each pinned revision."""
        content = _read_record(self.folder / _PINS)
        return {name: commit for name, commit in content.items() if COMMIT.fullmatch(str(commit))}

    def pin(self, revision: str, commit: str) -> None:
        """Pin a revision to a commit."""
        write_json(self.folder / _PINS, {**self.pins(), revision: commit})

    def unpin(self, commit: str) -> None:
        """Delete the pins of a commit."""
        pins = self.pins()
        if left := {name: pin for name, pin in pins.items() if pin != commit}:
            if left != pins:
                write_json(self.folder / _PINS, left)
        else:
            (self.folder / _PINS).unlink(missing_ok=True)

    def commit_of(self, revision: str) -> str | None:
        """Find the commit of a revision, if it is known without asking the hub."""
        return revision if COMMIT.fullmatch(revision) else self.pins().get(revision)

    def place(self, commit: str) -> Path:
        """Return the run folder of a commit, which may not exist yet."""
        return self.folder / commit / HubName(self.repo).title

    def find(self, revision: str) -> Path | None:
        """Find the run of a revision, if the current version of the conversion wrote it."""
        commit = self.commit_of(revision)
        if commit is None:
            return None
        is_current = _read_record(self.place(commit) / RECORD).get("conversion") == CONVERSION
        return self.place(commit) if is_current else None

    def models(self) -> list[CachedModel]:
        """List the converted commits."""
        if not self.folder.is_dir():
            return []
        pins, models = self.pins(), []
        for commit in sorted(path.name for path in self.folder.iterdir()):
            run = self.place(commit)
            if not COMMIT.fullmatch(commit) or not (run / RECORD).is_file():
                continue
            pinned = tuple(name for name, pin in pins.items() if pin == commit)
            name = HubName(self.repo, commit)
            models.append(CachedModel(name, run, _read_record(run / RECORD), pinned))
        return models

    def remove(self, commit: str) -> None:
        """Delete a converted commit and its pins."""
        with self.locked(), writing(self.folder):
            with suppress(FileNotFoundError):  # another process was faster
                remove_folder(self.folder / commit)
            self.unpin(commit)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock this model against other processes and threads; leave no empty folder."""
        descriptor = self._lock()
        try:
            with writing(self.folder):
                tidy(self.folder)
            yield
        finally:
            with suppress(OSError):
                if [path.name for path in self.folder.iterdir()] == [_LOCK]:
                    (self.folder / _LOCK).unlink()
                    self.folder.rmdir()
            os.close(descriptor)

    def _lock(self) -> int:
        """Open and lock the lock file, which its previous owner may have removed."""
        path = self.folder / _LOCK
        ways = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        while True:
            make_folder(self.folder)
            with writing(self.folder), suppress(FileNotFoundError):
                descriptor = os.open(path, ways, 0o600)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    say(f"{self.repo}: another process is converting it; waiting ...")
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                if is_at(path, descriptor):
                    return descriptor
                os.close(descriptor)


def cached_models() -> list[CachedModel]:
    """List all converted models."""
    root = hub_cache()
    repos = [path.name.replace("--", "/", 1) for path in sorted(root.glob("*--*"))]
    return [model for repo in repos for model in ModelCache(repo).models()]


def find_cached(name: HubName, is_exact: bool) -> list[CachedModel]:
    """
    Find the converted commits of a name. Raises `RunFolderError` if there are none.

    `is_exact`: whether only the named revision is meant, not all commits.
    """
    cache = ModelCache(name.repo)
    models = cache.models()
    if is_exact:
        commit = cache.commit_of(name.revision)
        models = [model for model in models if model.name.revision == commit]
    if not models:
        raise RunFolderError(
            f"the cache must contain {name}, but {hub_cache()} does not; `heedful hub list` shows "
            "its models."
        )
    return models


def _read_record(path: Path) -> dict[str, Any]:
    """Read a record of the cache, empty if missing or damaged; damage is reported once."""
    if not path.is_file():
        return {}
    try:
        return read_json(path)
    except RunFolderError as error:
        if path not in _DAMAGED:
            _DAMAGED.add(path)
            problem = str(error).rstrip(".")
            say(f"{problem}; heedful ignores this file, and writes it again at the next use.")
        return {}


def say(line: str) -> None:
    """Print progress to standard error; standard output is for results."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)
