"""The small files that a run cannot be used without."""

from heedful.checkpoint.rundir import RunFolder
from heedful.data.files import write_whole, writing
from heedful.errors import RunFolderError, TrainingFailed
from heedful.workflow.run import Run

_PATTERNS = ("config.json", "origin.json", "tokenizer*")


class RunFiles:
    """Settings and subwords as they were at the start, to be written again if they vanish."""

    def __init__(self, folder: RunFolder) -> None:
        found = [path for pattern in _PATTERNS for path in sorted(folder.path.glob(pattern))]
        self._content = {path: path.read_bytes() for path in found}

    def restore(self) -> list[str]:
        """Write again what is missing; return its names."""
        lost = [path for path in self._content if not path.exists()]
        for path in lost:
            with writing(path.parent):
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, self._content[path])
        return [path.name for path in lost]


def require_usable(folder: RunFolder) -> None:
    """Raise `TrainingFailed` unless the run can be opened and its last weights be read."""
    try:
        run = Run.open(folder.path)
        run.load_checkpoint(run.checkpoint_folder("last"))
    except RunFolderError as error:
        raise TrainingFailed(
            f"a training must end with a run that translates, but {folder.path} is none: {error}"
        ) from error
