"""
The layout of a run folder.

::

    RUN/config.json                            settings, and choices for the machine
    RUN/tokenizer.json, tokenizer*             subwords
    RUN/origin.json                            the pretrained run, only after fine-tuning
    RUN/hub.json                               the model on the hub, only after conversion from it
    RUN/data/                                  ids of the training pairs; only for training
    RUN/pairs/                                 the pairs that were given in memory, for `resume`
    RUN/epoch/                                 ids of an epoch's sampled subwords; only for training
    RUN/log.jsonl                              training log, one JSON object per line
    RUN/checkpoints/step-00001000/             model.safetensors, training.safetensors, state.json
    RUN/average/                               model.safetensors, state.json
    RUN/best.json                              the best validations, best first
    RUN/plugins/                               copies of plugins, which are never executed

Each file except the log is written under a temporary name, synced and renamed, so a reader never
sees a partial file.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import RunFolderError
from heedful.files import read_within, sync, write_whole, writing
from heedful.plugins import FOLDER
from heedful.runs.foreign_models import recognize
from heedful.runs.hub_names import advice_on_missing

_LARGEST = 1 << 24
_STEP = re.compile(r"step-(\d+)$")


@dataclass(frozen=True)
class RunFolder:
    """Paths in a run folder."""

    path: Path

    @property
    def config(self) -> Path:
        """File of the settings; a folder without it is not a run folder."""
        return self.path / "config.json"

    @property
    def log(self) -> Path:
        """Log file, one JSON object per line."""
        return self.path / "log.jsonl"

    @property
    def data(self) -> Path:
        """Folder of the training ids, which are not needed to use the model."""
        return self.path / "data"

    @property
    def average(self) -> Path:
        """Folder of averaged weights, after `heedful average`."""
        return self.path / "average"

    @property
    def plugins(self) -> Path:
        """Folder of copies of plugins, which are kept for people to read."""
        return self.path / FOLDER

    @property
    def best(self) -> Path:
        """List of the best validations, best first."""
        return self.path / "best.json"

    def checkpoint(self, step: int) -> Path:
        """Return the checkpoint folder of a step; with eight digits, names sort like numbers."""
        return self.path / "checkpoints" / f"step-{step:08d}"

    def steps(self) -> list[int]:
        """List the steps that have a checkpoint."""
        folder = self.path / "checkpoints"
        if not folder.is_dir():
            return []
        matches = (_STEP.fullmatch(entry.name) for entry in folder.iterdir())
        return sorted(int(match[1]) for match in matches if match)

    def require(self) -> None:
        """Check that this is a run folder. Raises `RunFolderError` if it is not."""
        known = recognize(self.path)
        if known is not None:
            raise RunFolderError(
                f"a run folder made by `heedful train` or `heedful import` is needed, but "
                f"{self.path} is {known.name}; {known.advice}."
            )
        if not self.config.is_file():
            there = self.path.exists()
            what = "holds no config.json" if there else "does not exist"
            advice = "check the path" if there else advice_on_missing(self.path)
            raise RunFolderError(
                "a run folder made by `heedful train` or `heedful import` is needed, but the "
                f"folder {self.path} {what}; {advice}."
            )


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object of a run folder, or raise `RunFolderError`."""
    try:
        content = json.loads(read_within(path, _LARGEST).decode())
    except FileNotFoundError as error:
        raise RunFolderError(f"{path} is missing; the run folder is not complete.") from error
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise RunFolderError(
            f"{path} must be a JSON file, but is not ({error}); it is damaged or a different file."
        ) from error
    if not isinstance(content, dict):
        raise RunFolderError(f"{path} must contain a JSON object, but contains something else.")
    return content


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file atomically, or raise `StorageError` and leave the old file unchanged."""
    with writing(path.parent):
        text = json.dumps(content, indent=2, ensure_ascii=False)
        write_whole(path, text.encode(), alone=True)
        sync(path.parent)
