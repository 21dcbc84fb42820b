"""The log file and the progress display of training."""

import math
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from heedful.errors import RunFolderError, StorageError, escape_controls
from heedful.files import open_ordinary, write_whole, writing
from heedful.runs.log_entries import parse_line
from heedful.settings.registries import score_metrics
from heedful.text.lines import json_line
from heedful.training.history import FIGURES
from heedful.training.live_line import LiveLine

_LONGEST_SAMPLE = 300


class _Console(Console):
    """A console that survives a closed pipe."""

    def on_broken_pipe(self) -> None:
        """Continue silently; rich would end the process."""
        self.quiet = True


class RunLog:
    """The log file and the progress display of a run."""

    def __init__(
        self,
        path: Path | None,
        step: int,
        total_steps: int,
        quiet: bool = False,
        line: LiveLine | None = None,
    ) -> None:
        self._path, self._line, self._validated = path, line, ""
        quiet = quiet or path is None
        self._console = _Console(stderr=True, quiet=quiet, highlight=False, emoji=False)
        self._total = total_steps
        self._bar: Progress | None = None
        self._file = None
        if path is not None:
            earlier = _lines_up_to(path, step)
            with writing(path.parent):
                if earlier is not None:
                    write_whole(path, earlier, alone=True)
                self._file = _open_to_append(path)
        if self._console.is_terminal and not self._console.quiet:
            self._bar = Progress(
                TextColumn("{task.percentage:>3.0f}%"),
                BarColumn(bar_width=10),
                TextColumn("{task.description}"),
                console=self._console,
            )
            self._task = self._bar.add_task("starting", total=total_steps, completed=step)

    def __enter__(self) -> "RunLog":
        """Start the progress display."""
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the progress display and close the file."""
        if self._bar is not None:
            with suppress(OSError):
                self._bar.stop()
        if self._file is not None:
            self._file.close()

    def training(self, line: dict[str, Any], share: float, remaining: float) -> None:
        """Log a training line and flush it at once, so that a killed process loses no line."""
        self._write(line)
        rate, speed = line["learning_rate"], line["target_tokens_per_second"]
        if self._bar is not None:  # fits into 80 columns
            text = (
                f"step {line['step']:,}  loss {line['loss']:.2f}  rate {rate:.1e}  "
                f"{speed:,.0f} tokens/s  {duration(remaining)}"
            )
            self._bar.update(self._task, completed=share * self._total, description=text)
            return
        if self._line is not None:
            self._line.show(
                f"{share:4.0%}  step {line['step']:,}  loss {line['loss']:.3f}  "
                f"{speed:,.0f} tokens/s  {duration(remaining)} left{self._validated}"
            )
            return
        figures = "".join(f"{name} {line[name]:.3f}  " for name in FIGURES if name in line)
        self.say(
            f"step {line['step']:,}  loss {line['loss']:.3f}  {figures}"
            f"perplexity {line['perplexity']:.2f}  "
            f"rate {rate:.2e}  {speed:,.0f} tokens/s  {duration(remaining)} left"
        )

    def validation(self, line: dict[str, Any]) -> None:
        """Log a validation, and print its perplexity, scores and sample translations."""
        self._write(line)
        scores = "".join(
            f", {metric.label} {line[metric.key]:.1f}"
            for metric in score_metrics()
            if metric.key in line
        )
        shown = f"perplexity {line['valid_perplexity']:.2f}{scores}"
        if self._line is not None:
            self._validated = f"  (validation at step {line['step']:,}: {shown})"
            return
        self.say(f"validation at step {line['step']:,}: {shown}")
        for sample in line.get("samples", ()):
            for side, text in sample.items():
                self.say(f"  {side:<11}  {_shorten(text)}")

    def result(self, result: Any) -> None:
        """Replace a notebook's progress line with the result of the training and its curve."""
        if self._line is not None:
            self._line.show_object(result)

    def refusal(self, line: dict[str, Any]) -> None:
        """Log a batch whose update was skipped."""
        self._write(line)

    def say(self, text: str) -> None:
        """Print a message to the terminal."""
        if self._line is not None:
            self._line.say(text)
            return
        # The message is not part of the log file. A closed terminal does not end the run.
        with suppress(OSError):
            self._console.print(escape_controls(text), markup=False, soft_wrap=True)

    def _write(self, line: dict[str, Any]) -> None:
        """Append a line to the log file."""
        if self._file is None:
            return
        # JSON has no infinity
        finite = {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in line.items()
        }
        try:
            self._open_again_if_removed()
            self._file.write(json_line(finite) + "\n")
            self._file.flush()
        except OSError as error:
            raise StorageError(
                f"cannot write to {self._path}: {error.strerror}. Free some space and run the "
                "command again with --resume; the last checkpoint is intact."
            ) from error

    def _open_again_if_removed(self) -> None:
        """Reopen the log if its file was deleted."""
        if self._path is None or self._file is None or self._path.exists():
            return
        self._file.close()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = _open_to_append(self._path)
        self.say(f"warning: {self._path.name} was removed during training; a new log begins here")


def _shorten(text: str) -> str:
    """Shorten a long text for a terminal; the log contains the complete text."""
    if len(text) <= _LONGEST_SAMPLE:
        return text
    return f"{text[:_LONGEST_SAMPLE]}… ({len(text):,} characters)"


def perplexity(nll: float) -> float:
    """Compute the perplexity per subword from a mean negative log-likelihood, in nats."""
    return math.exp(nll) if nll < 700 else math.inf


def duration(seconds: float) -> str:
    """
    Format a duration as hours, minutes and seconds, as in ``27:05:09``.

    Days are shown as hours, so that runs are easy to compare.
    """
    total = round(seconds) if math.isfinite(seconds) else 0
    return f"{total // 3600}:{total // 60 % 60:02d}:{total % 60:02d}"


def _open_to_append(path: Path) -> TextIO:
    """Open a log; replace a symbolic link with a file, because another user may have created it."""
    if path.is_symlink():
        path.unlink()
    return open(path, "a", encoding="utf-8", opener=_never_follow)


def _never_follow(path: str, flags: int) -> int:
    """Open a file, but not a link; a pipe without a reader raises an error instead of blocking."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


def _lines_up_to(path: Path, step: int) -> bytes | None:
    """Read the lines of a log up to a step; None if there is no log."""
    complete = []
    try:
        with open_ordinary(path) as lines:
            for line in lines:
                # `entry` is None if the line is truncated or is not from a log
                entry = parse_line(line)
                if entry is not None and line.endswith(b"\n") and entry["step"] <= step:
                    complete.append(line)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunFolderError(
            f"{path} must be the log of this run, but cannot be read: {error.strerror}; move the "
            "file elsewhere, and training begins a new log."
        ) from error
    return b"".join(complete)
