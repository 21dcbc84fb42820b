"""
TensorBoard event files, written during training.

TensorBoard shows every folder below its `--logdir` as a separate run. So each run has a folder with
its name: write with `heedful train … --tensorboard DIR`, read with `tensorboard --logdir DIR`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heedful.errors import MissingExtra, StorageError
from heedful.runs.log_entries import read_entries
from heedful.settings.registries import score_metrics
from heedful.training.callbacks import Callback
from heedful.training.history import FIGURES, read_history

_OF_TRAINING = (
    *("loss", "perplexity", *FIGURES, "learning_rate", "target_tokens"),
    *("target_tokens_per_second", "padding", "memory"),
)
_TAGS = {name: f"train/{name}" for name in _OF_TRAINING}
_TAGS |= {f"valid_{name}": f"validation/{name}" for name in ("loss", "perplexity")}


class EventLog(Callback):
    """
    A callback that writes the log of a run as TensorBoard events.

    A resumed run repeats the steps after its last checkpoint; with `next_step` TensorBoard drops
    the earlier events of these steps. Raises `MissingExtra` without tensorboard and `StorageError`
    if the folder cannot be written.
    """

    def __init__(self, folder: Path, next_step: int = 0) -> None:
        require_tensorboard()
        from torch.utils.tensorboard import SummaryWriter

        self._folder = folder
        with self._storage_errors():
            self._writer = SummaryWriter(str(folder), purge_step=next_step, max_queue=1000)

    @classmethod
    def follow(cls, folder: Path, log: Path, step: int) -> "EventLog":
        """
        Open the events of a new or resumed run.

        `step`: the step from which the run continues, 0 for a new run.

        If the folder has no events yet, the log so far is written first. So the events are complete
        even if a run is resumed with TensorBoard for the first time.
        """
        if any(folder.glob("events.out.tfevents.*")):
            return cls(folder, step + 1)
        events = cls(folder)
        if log.exists():
            events.replay(log, step)
        return events

    def __enter__(self) -> "EventLog":
        """Return the object itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file and the writer thread."""
        with self._storage_errors():
            self._writer.close()

    def on_log(self, line: dict[str, Any]) -> None:
        self.write(line)

    def on_validation(self, line: dict[str, Any]) -> None:
        self.write(line)

    def write(self, line: Mapping[str, Any], wall_time: float | None = None) -> None:
        """
        Write one line of the log as events.

        `wall_time`: time of the line, in seconds since 1970; now if None.

        Without `wall_time`, the line is on disk when the call returns. Values that are not finite
        are omitted.
        """
        with self._storage_errors():
            scores = {m.key: f"validation/{m.key}" for m in score_metrics()}
            for name, tag in {**_TAGS, **scores}.items():
                if _is_number(line.get(name)):
                    self._writer.add_scalar(tag, line[name], line["step"], wall_time)
            if samples := line.get("samples"):
                table = _sample_table(samples)
                self._writer.add_text("validation/samples", table, line["step"], wall_time)
            if wall_time is None:
                self._writer.flush()

    def replay(self, log: Path, last_step: int | None = None) -> None:
        """
        Write all lines of a log as events.

        `last_step`: last step to write; all steps if None.

        The log has seconds of training, but no dates. The modification time of the file counts as
        the end of the run, and pauses before the run was resumed are ignored.
        """
        seconds = read_history(log).last("seconds") or 0.0
        began = log.stat().st_mtime - seconds
        seconds = 0.0
        for entry in read_entries(log):
            if entry is None or (last_step is not None and entry["step"] > last_step):
                continue
            seconds = entry["seconds"] if _is_number(entry.get("seconds")) else seconds
            self.write(entry, began + seconds)
        with self._storage_errors():
            self._writer.flush()

    @contextmanager
    def _storage_errors(self) -> Iterator[None]:
        """Convert storage errors to a `StorageError` that names the folder."""
        try:
            yield
        except OSError as error:
            raise StorageError(
                f"the TensorBoard events cannot be written to {self._folder}: "
                f"{error.strerror or error}. Free some space or name another folder; the run "
                "itself and its last checkpoint are intact."
            ) from error


def require_tensorboard() -> None:
    """Raise `MissingExtra` unless TensorBoard's writer is installed."""
    try:
        import tensorboard.summary.writer.event_file_writer  # noqa: F401
    except ImportError as error:
        raise MissingExtra(
            "--tensorboard needs the tensorboard package, which is not installed; "
            "install it with: pip install 'heedful[track]'"
        ) from error


def _sample_table(samples: Sequence[Mapping[str, str]]) -> str:
    """Format sample translations as a Markdown table for TensorBoard."""
    rows = [[f"**{side}**" for side in samples[0]], ["---"] * len(samples[0])]
    rows += [[text.replace("|", "\\|") for text in sample.values()] for sample in samples]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _is_number(value: object) -> bool:
    """Return whether TensorBoard can plot a value."""
    return isinstance(value, int | float) and math.isfinite(value)
