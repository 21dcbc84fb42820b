"""
The run folder from the first check to the first step.

One process writes into it, and a start that is refused leaves nothing behind.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from heedful.checkpoint.lock import LOCK, only_writer, refuse_if_written
from heedful.checkpoint.rundir import RunFolder
from heedful.config.schema import RunConfig
from heedful.data.files import writing
from heedful.data.folders import tidy
from heedful.errors import HeedfulError, TrainingFailed, UserError
from heedful.training.state import Progress
from heedful.workflow.material import Sizes
from heedful.workflow.prepare import check_folder


@dataclass
class Claim:
    """What a start makes, to be removed if the start is refused."""

    emptied: list[Path] = field(default_factory=list)
    """Folders whose content goes: they were empty or not there."""
    made: list[Path] = field(default_factory=list)
    """Folders that were not there."""
    trains: bool = False
    """Whether the loop has been entered."""
    progress: Progress | None = None
    """Of the loop."""

    def will_make(self, folder: Path) -> None:
        """Note a folder that is about to be filled."""
        self.made += _missing(folder)
        if not folder.is_dir() or all(entry.name == LOCK for entry in folder.iterdir()):
            self.emptied.append(folder)

    def undo(self, error: BaseException) -> None:
        """
        Remove what was made, unless somebody can use it.

        What was stopped or found no room stays, to be resumed, and so does what was trained; a
        failure in the loop leaves its report.
        """
        began = self.progress is not None and self.progress.counters.step > 0
        refused = isinstance(error, UserError)
        if not self.trains:
            resumable = isinstance(error, HeedfulError) and not isinstance(error, TrainingFailed)
            refused |= isinstance(error, Exception) and not resumable
        if began or not refused:
            return
        for folder in filter(Path.is_dir, self.emptied):
            for path in folder.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        for folder in sorted(self.made, key=lambda path: len(path.parts), reverse=True):
            with suppress(OSError):
                folder.rmdir()


@contextmanager
def claimed_folder(
    folder: RunFolder, config: RunConfig, files: Sizes, resume: bool, inexact: bool
) -> Iterator[Claim]:
    """Hold a run folder, made if it is not there; raises `RunFolderError` if it is taken."""
    refuse_if_written(folder.path)
    check_folder(folder, config, files, resume, inexact)
    claim = Claim(made=_missing(folder.path))
    with writing(folder.path):
        folder.path.mkdir(parents=True, exist_ok=True)
    with only_writer(folder.path, "train"):
        check_folder(folder, config, files, resume, inexact)  # it may have been taken meanwhile
        claim.will_make(folder.path)
        with writing(folder.path):
            tidy(folder.path)
            tidy(folder.path / "checkpoints")
        try:
            yield claim
        except BaseException as error:
            claim.undo(error)
            raise


def _missing(folder: Path) -> list[Path]:
    """List the folder and those it lies in that are not there."""
    return [path for path in (folder, *folder.parents) if not path.exists()]
