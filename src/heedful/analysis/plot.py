"""
Learning curves from training logs, as a picture or in TensorBoard.

This module does not need torch, because it reads only logs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from os.path import abspath
from pathlib import Path
from typing import Literal

from heedful.arguments import check_counts, checked
from heedful.errors import ArgumentError, MissingExtra, RunFolderError
from heedful.runs.folder import RunFolder
from heedful.runs.hub_names import run_folder
from heedful.settings.registries import score_metrics
from heedful.text.sentence_pairs import Files, file_list
from heedful.training.history import FIGURES, History, read_history
from heedful.training.log import duration, perplexity
from heedful.training.tensorboard import EventLog
from heedful.visualise.curves import RunCurves, learning_curves, learning_curves_content
from heedful.visualise.figure_files import three_digits

_MINUTES_UP_TO = 2 * 3600


def read_runs(paths: Sequence[str | Path]) -> dict[str, History]:
    """
    Read the logs of one or more runs.

    For a resumed run, the lines that were written between the last checkpoint and the interruption
    are left out.

    Raises `RunFolderError` if a path is not a run folder or its run has logged nothing yet.
    """
    folders = [RunFolder(run_folder(path)) for path in paths]
    for folder in folders:
        folder.require()
    histories = [read_history(folder.log) for folder in folders]
    for folder, history in zip(folders, histories, strict=True):
        if not history.steps:
            raise RunFolderError(
                f"a plot needs at least one logged step, but {folder.log} has none yet; wait for "
                "the first steps of the run."
            )
    return dict(zip(run_names([folder.path for folder in folders]), histories, strict=True))


def run_names(paths: Sequence[Path]) -> list[str]:
    """
    Name runs after their folders.

    A name consists of the last parts of the path, as many as are needed to distinguish the runs.

    >>> run_names([Path("runs/small"), Path("runs/tiny")])
    ['small', 'tiny']
    >>> run_names([Path("a/run"), Path("b/run"), Path("b/run")])
    ['a/run', 'b/run', 'b/run (2)']
    """
    parts = [Path(abspath(path)).parts for path in paths]
    different = len(set(parts))
    longest = max(map(len, parts), default=1)
    for depth in range(1, longest + 1):
        names = ["/".join(path[-depth:]).lstrip("/") for path in parts]
        if len(set(names)) == different:
            break
    seen: dict[str, int] = {}
    for index, name in enumerate(names):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            names[index] = f"{name} ({seen[name]})"
    return names


@dataclass(frozen=True)
class LearningCurves:
    """Learning curves of several runs; a notebook shows them as one picture."""

    runs: Mapping[str, History]
    """The log of each run, by its name."""
    along: str = "steps"
    """Horizontal axis: steps, real target tokens, or hours; each is summed over resumptions."""
    smooth: int = 1
    """Number of log lines averaged around each point."""

    def save(self, out: str | PathLike[str]) -> None:
        """Write the picture; the file extension must be .png, .svg or .pdf."""
        label, curves = self._read()
        learning_curves(curves, Path(out), x_label=label, smooth=self.smooth)

    def __repr__(self) -> str:
        return summary(self.runs)

    def _repr_svg_(self) -> str | None:
        """Show the picture in a notebook, if matplotlib is installed."""
        label, curves = self._read()
        try:
            return learning_curves_content(curves, ".svg", label, self.smooth).decode()
        except MissingExtra:
            return None

    def _read(self) -> tuple[str, list[RunCurves]]:
        """Return the label of the horizontal axis and the curves; short runs are in minutes."""
        label, column, unit = "steps", "step", 1.0
        if self.along == "tokens":
            label, column = "target tokens", "target_tokens"
        elif self.along == "hours":
            longest = max(history.last("seconds") or 0.0 for history in self.runs.values())
            label, unit = ("minutes", 60.0) if longest < _MINUTES_UP_TO else ("hours", 3600.0)
            column = "seconds"
        return label, [_curves(*run, column, unit) for run in self.runs.items()]


@checked
def plot(
    runs: Files,
    out: str | PathLike[str] | None = None,
    *,
    along: Literal["steps", "tokens", "hours"] = "steps",
    smooth: int = 1,
) -> LearningCurves:
    """
    Draw the learning curves of one or more runs.

    Parameters
    ----------
    runs : str, Path, TrainingResult or sequence of them
        Run folders; a run may still be training.
    out : path, optional
        A file to write: .png, .svg or .pdf.
    along : {'steps', 'tokens', 'hours'}, default 'steps'
        Horizontal axis.
    smooth : int, default 1
        Number of log lines averaged around each point.

    Returns
    -------
    LearningCurves
        A notebook shows it as a picture, and `print` shows one line per run; `save` writes the
        picture.

    Notes
    -----
    On the command line, use `heedful plot`. Pictures need matplotlib (extra plot).
    Attention is drawn by `Translator.attend`.
    """
    check_counts(smooth=smooth)
    names = file_list(runs)
    if not names:
        raise ArgumentError("`runs` of plot must name at least one run, but is empty.")
    curves = LearningCurves(read_runs(names), along, smooth)
    if out is not None:
        curves.save(out)
    return curves


def write_events(runs: Sequence[str | Path], folder: Path) -> None:
    """Write the logs of one or more runs for TensorBoard."""
    paths = [Path(run) for run in runs]
    for path, name in zip(paths, run_names(paths), strict=True):
        with EventLog(folder / name) as events:
            events.replay(RunFolder(run_folder(path)).log)


def summary(runs: Mapping[str, History]) -> str:
    """Summarize each run in one line."""
    scores = [
        metric
        for metric in score_metrics()
        if metric.key == "bleu" or any(run.best(metric.key) for run in runs.values())
    ]
    best = [f"best {metric.label}" for metric in scores]
    rows = [("run", "steps", *best, "best perplexity", "last loss", "target tokens", "time")]
    for name, history in runs.items():
        loss = history.best("valid_loss")
        note = f" (refused step {history.refused[-1]:,})" if history.refused else ""
        rows.append(
            (
                name,
                f"{history.steps:,}{note}",
                *(_best_score(history, metric.key) for metric in scores),
                f"{three_digits(perplexity(loss[0]))} at {loss[1]:,}" if loss else "-",
                _format(history.last("loss"), "{:.3f}".format),
                _format(history.last("target_tokens"), "{:,.0f}".format),
                _format(history.last("seconds"), duration),
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(lines)


def _best_score(history: History, key: str) -> str:
    """Format the best value of a score and its step, or a dash."""
    best = history.best(key)
    return f"{best[0]:.1f} at {best[1]:,}" if best else "-"


def _format(value: float | None, write: Callable[[float], str]) -> str:
    """Format a number, or a dash if there is none."""
    return "-" if value is None else write(value)


def _curves(name: str, history: History, column: str, unit: float) -> RunCurves:
    """Collect the curves of one run."""
    training, validation = history.training, history.validation
    valid_x = (
        validation["step"] if column == "step" else history.at_step(column, validation["step"])
    )
    return RunCurves(
        name,
        training[column] / unit,
        training["loss"],
        training["nll"],
        training["learning_rate"],
        training["target_tokens_per_second"],
        valid_x / unit,
        validation["valid_loss"],
        {
            metric.label: (validation[metric.key], metric.higher_is_better)
            for metric in score_metrics()
        },
        {name: training[name] for name in FIGURES},
    )
