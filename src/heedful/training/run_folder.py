"""
A run folder during training: locked, kept complete, and removed after a user error.

Only one process writes to it, and a refused training run leaves no files.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from heedful.errors import HeedfulError, RunFolderError, TrainingFailed, UserError
from heedful.files import read_within, tidy, write_whole, writing
from heedful.runs.folder import RunFolder
from heedful.runs.lock import LOCK, only_writer, refuse_if_written
from heedful.runs.run import Run, read_plugins
from heedful.training.setup import TrainingSetup, check_folder
from heedful.training.state import TrainState


@dataclass
class Claim:
    """The folders that training fills, and that are emptied again if training is refused."""

    emptied: list[Path] = field(default_factory=list)
    """Folders to empty on failure, because they were empty or did not exist."""
    new_folders: list[Path] = field(default_factory=list)
    """Folders to delete on failure, because they did not exist."""
    trains: bool = False
    """Whether the training loop has begun."""
    train_state: TrainState | None = None
    """State of the training, once it is known; after the first step no file is removed."""

    def will_make(self, folder: Path) -> None:
        """Record a folder that is about to be filled."""
        self.new_folders += _missing(folder)
        if not folder.is_dir() or all(entry.name == LOCK for entry in folder.iterdir()):
            self.emptied.append(folder)

    def cleanup_if_refused(self, error: BaseException) -> None:
        """
        Remove new files after a user error, or after any error before the loop.

        An interrupted run, a run on a full disk, and a trained run are kept and can be resumed.
        After a failure in the training loop, the report of the failure is kept.
        """
        began = self.train_state is not None and self.train_state.counters.step > 0
        refused = isinstance(error, UserError)
        if not self.trains:
            resumable = isinstance(error, HeedfulError) and not isinstance(error, TrainingFailed)
            refused |= isinstance(error, Exception) and not resumable
        if began or not refused:
            return
        for folder in filter(Path.is_dir, self.emptied):
            for path in folder.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        for folder in sorted(self.new_folders, key=lambda path: len(path.parts), reverse=True):
            with suppress(OSError):
                folder.rmdir()


@contextmanager
def create_run_folder(folder: RunFolder, setup: TrainingSetup) -> Iterator[Claim]:
    """Create a run folder if missing, and lock it; raises `RunFolderError` if it is in use."""
    refuse_if_written(folder.path)
    check_folder(folder, setup)
    claim = Claim(new_folders=_missing(folder.path))
    with writing(folder.path):
        folder.path.mkdir(parents=True, exist_ok=True)
    with only_writer(folder.path, "train"):
        check_folder(folder, setup)  # another process may have written to it
        claim.will_make(folder.path)
        with writing(folder.path):
            tidy(folder.path)
            tidy(folder.path / "checkpoints")
        try:
            yield claim
        except BaseException as error:
            claim.cleanup_if_refused(error)
            raise


def _missing(folder: Path) -> list[Path]:
    """List the missing folders among a folder and its parents."""
    return [path for path in (folder, *folder.parents) if not path.exists()]


_PATTERNS = ("config.json", "origin.json", "tokenizer*")


class RunFiles:
    """Copies of a run's first files, such as settings and tokenizer, to restore deleted files."""

    def __init__(self, folder: RunFolder) -> None:
        paths = [path for pattern in _PATTERNS for path in sorted(folder.path.glob(pattern))]
        paths += [folder.plugins / record["name"] for record in read_plugins(folder)]
        self._content = {path: read_within(path) for path in paths}

    def restore(self) -> list[str]:
        """Restore deleted files; return their names."""
        lost = [path for path in self._content if not path.exists()]
        for path in lost:
            with writing(path.parent):
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, self._content[path])
        return [path.name for path in lost]


def require_usable(folder: RunFolder) -> None:
    """Raise `TrainingFailed` unless the run and all of its last weights can be read."""
    try:
        run = Run.open(folder.path)
        for _ in run.load_checkpoint(run.checkpoint_folder("last")).model.values():
            pass  # reading a tensor checks that it is finite
    except RunFolderError as error:
        raise TrainingFailed(
            f"training must end with a run that can translate, but {folder.path} cannot: {error}"
        ) from error
