"""
A run in TensorBoard: what the log says, as event files, while the run is going on.

TensorBoard shows every folder below its `--logdir` as a run of its own. So each run has a folder
named after it, and `heedful train … --tensorboard DIR` with `tensorboard --logdir DIR` is all there
is to it.
"""

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.errors import MissingExtra, StorageError
from heedful.training.history import read_entries, read_history
from heedful.training.validation_metrics import SCORES

_TAGS = {
    "loss": "train/loss",
    "perplexity": "train/perplexity",
    "learning_rate": "train/learning_rate",
    "target_tokens": "train/target_tokens",
    "target_tokens_per_second": "train/target_tokens_per_second",
    "padding": "train/padding",
    "memory": "train/memory",
    "valid_loss": "validation/loss",
    "valid_perplexity": "validation/perplexity",
    **{metric.key: f"validation/{metric.key}" for metric in SCORES},
}


class EventLog:
    """
    Write the lines of one run's log as TensorBoard events.

    Parameters
    ----------
    folder : Path
        The folder of this run below TensorBoard's `--logdir`; made if it is not there.
    next_step : int, default 0
        The first step that will be written; what earlier files say of it and of later steps no
        longer counts.

    Notes
    -----
    Uses the writer of the package tensorboard, which needs no TensorFlow. A resumed run repeats
    the steps after its last checkpoint; the mark for a restart at `next_step` makes TensorBoard
    forget what the interrupted sitting wrote of them. Raises `MissingExtra` if tensorboard is not
    installed and `StorageError` if the folder cannot be written.
    """

    def __init__(self, folder: Path, next_step: int = 0) -> None:
        require_tensorboard()
        from tensorboard.compat.proto.event_pb2 import SessionLog
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._folder = folder
        try:
            self._writer = EventFileWriter(str(folder), max_queue_size=1000)
        except OSError as error:
            raise self._failure(error) from error
        self._add(next_step, time.time(), session_log=SessionLog(status=SessionLog.START))

    @classmethod
    def follow(cls, folder: Path, log: Path, step: int) -> "EventLog":
        """
        Begin, or go on, to write the events of a run that trains.

        Parameters
        ----------
        folder : Path
            The folder of this run below TensorBoard's `--logdir`.
        log : Path
            Its `log.jsonl`, up to `step`.
        step : int
            The step it continues from, 0 for a new run.

        Returns
        -------
        EventLog
            Ready for the next line.

        Notes
        -----
        Where the folder has no events yet, the log up to now is written first, so that a run that
        is resumed with TensorBoard for the first time is whole there.
        """
        if any(folder.glob("events.out.tfevents.*")):
            return cls(folder, step + 1)
        events = cls(folder)
        if log.exists():
            events.replay(log, step)
        return events

    def __enter__(self) -> "EventLog":
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the file and the thread that writes it."""
        try:
            self._writer.close()
        except OSError as error:
            raise self._failure(error) from error

    def write(self, line: Mapping[str, Any], wall_time: float | None = None) -> None:
        """
        Write what one line of the log says.

        Parameters
        ----------
        line : dict
            A training or validation line; anything else in it is left out.
        wall_time : float, optional
            When it was, in seconds since 1970; now when absent.

        Returns
        -------
        None
            Nothing.

        Notes
        -----
        On disk when the call returns. What is not a finite number is left out.
        """
        from tensorboard.compat.proto.summary_pb2 import Summary

        numbers = {tag: line[name] for name, tag in _TAGS.items() if _is_number(line.get(name))}
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in numbers.items()]
        if samples := line.get("samples"):
            values.append(_text("validation/samples", _sample_table(samples)))
        if values:
            now = time.time() if wall_time is None else wall_time
            self._add(line["step"], now, summary=Summary(value=values))
        if wall_time is None:
            self._flush()

    def replay(self, log: Path, last_step: int | None = None) -> None:
        """
        Write everything that a log holds.

        Parameters
        ----------
        log : Path
            A `log.jsonl`.
        last_step : int, optional
            Where to stop; the end of the log when absent.

        Returns
        -------
        None
            Nothing.

        Notes
        -----
        The log counts seconds of training and knows no dates: the run is taken to have ended when
        the file was last changed, and pauses between its sittings are left out.
        """
        seconds = read_history(log).last("seconds") or 0.0
        began = log.stat().st_mtime - seconds
        seconds = 0.0
        for entry in read_entries(log):
            if entry is None or (last_step is not None and entry["step"] > last_step):
                continue
            seconds = entry["seconds"] if _is_number(entry.get("seconds")) else seconds
            self.write(entry, began + seconds)
        self._flush()

    def _flush(self) -> None:
        """Bring everything to the disk: TensorBoard reads while the run goes on."""
        try:
            self._writer.flush()
        except OSError as error:
            raise self._failure(error) from error

    def _add(self, step: int, wall_time: float, **what: Any) -> None:
        """Hand one event to the writer."""
        from tensorboard.compat.proto.event_pb2 import Event

        try:
            self._writer.add_event(Event(step=step, wall_time=wall_time, **what))
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> StorageError:
        """Say what to do about a disk that does not take the events."""
        return StorageError(
            f"the TensorBoard events cannot be written to {self._folder}: "
            f"{error.strerror or error}. Free some space or name another folder; the run itself "
            "and its last checkpoint are intact."
        )


def require_tensorboard() -> None:
    """
    Make sure that TensorBoard's writer is there.

    Returns
    -------
    None
        Nothing.

    Notes
    -----
    Raises `MissingExtra` if it is not: before a long preparation, not after it.
    """
    try:
        import tensorboard.summary.writer.event_file_writer  # noqa: F401
    except ImportError as error:
        raise MissingExtra(
            "--tensorboard needs the package tensorboard, which is not installed; "
            "install it with: pip install 'heedful[track]'"
        ) from error


def _sample_table(samples: Sequence[Mapping[str, str]]) -> str:
    """Lay sample translations out as a table of Markdown, which TensorBoard draws."""
    rows = [[f"**{side}**" for side in samples[0]], ["---"] * len(samples[0])]
    rows += [[text.replace("|", "\\|") for text in sample.values()] for sample in samples]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _text(tag: str, text: str) -> Any:
    """Make a value for TensorBoard's page of texts."""
    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
    from tensorboard.compat.proto.types_pb2 import DT_STRING

    one = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    return Summary.Value(
        tag=tag,
        metadata=SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text")),
        tensor=TensorProto(dtype=DT_STRING, tensor_shape=one, string_val=[text.encode()]),
    )


def _is_number(value: object) -> bool:
    """Tell a number that TensorBoard can draw."""
    return isinstance(value, int | float) and math.isfinite(value)
