"""
The training log of a run as arrays.

`heedful.training.log` writes `log.jsonl`; plots, comparisons and experiments read it with this
module. A log may still be growing, may end in the middle of a line if the process was killed, and
may be very long. So it is read as a stream into columns of numbers.
"""

from array import array
from collections.abc import Mapping, MutableSequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from heedful.runs.log_entries import read_entries
from heedful.settings.registries import METRICS

FIGURES = ("reward", "risk", "divergence")
"""Mean values that some objectives add to the log (`heedful.training.objective`)."""
TRAINING = (
    "step",
    "loss",
    "nll",
    "learning_rate",
    "source_tokens",
    "target_tokens",
    "flops",
    "padding",
    "target_tokens_per_second",
    "seconds",
    "memory",
    *FIGURES,
)
TrainingColumns = dict[str, Float64[np.ndarray, " lines"]]
ValidationColumns = dict[str, Float64[np.ndarray, " validations"]]


@dataclass(frozen=True)
class History:
    """
    The training log of a run as columns.

    Missing values, and values that were not finite when logged, are NaN.
    """

    training: TrainingColumns
    """A column for each of `TRAINING`, in increasing order of steps."""
    validation: ValidationColumns
    """A column for each of `validation_columns`."""
    refused: tuple[int, ...] = ()
    """Steps whose update was skipped because the loss or gradient was not finite."""
    unreadable: int = 0
    """Number of lines that are not log lines, except for an incomplete last line."""

    def at_step(self, column: str, steps: Float64[np.ndarray, " steps"]) -> np.ndarray:
        """
        Interpolate a counter of the training lines at other steps.

        `column`: a counter that never decreases, such as `target_tokens` or `seconds`.

        Validation lines lack these counters, but training lines are only seconds apart.
        """
        known = np.concatenate(([0.0], self.training["step"]))
        values = np.concatenate(([0.0], self.training[column]))
        finite = np.isfinite(values)
        return np.interp(steps, known[finite], values[finite])

    def last(self, column: str) -> float | None:
        """
        Return the last finite number in a column of the training lines; None if there is none.

        Counters continue when a run is resumed, so the last number is the total.
        """
        finite = self.training[column][np.isfinite(self.training[column])]
        return float(finite[-1]) if len(finite) else None

    def best(self, column: str) -> tuple[float, int] | None:
        """
        Find the best validation of the log.

        Returns the value in the column and its step; of equal values, the one with the lowest loss.
        Returns None if no validation has a finite value.

        Includes validations whose checkpoints were deleted.
        """
        values = self.validation[column]
        if not np.isfinite(values).any():
            return None
        higher = any(
            metric.key == column and metric.higher_is_better for metric in METRICS.values()
        )
        # as for the checkpoints that are kept, the loss decides between equal values
        index = np.lexsort((self.validation["valid_loss"], -values if higher else values))[0]
        return float(values[index]), int(self.validation["step"][index])

    @property
    def steps(self) -> int:
        """The step of the last line; 0 for an empty log."""
        return int(max([0, *self.training["step"][-1:], *self.validation["step"][-1:]]))


def validation_columns() -> tuple[str, ...]:
    """List the columns of a validation, including the metrics of plugins."""
    return ("step", "flops", *(metric.key for metric in METRICS.values()))


def read_history(path: Path) -> History:
    """
    Read a training log.

    A million lines take a few seconds and 100 MB. If steps decrease, as in the log of a resumed
    run, later lines replace earlier lines with the same or a later step.

    Raises `RunFolderError` if the file does not exist or cannot be read.
    """
    training = {name: array("d") for name in TRAINING}
    validation = {name: array("d") for name in validation_columns()}
    refused: list[int] = []
    unreadable = 0
    for entry in read_entries(path):
        if entry is None:
            unreadable += 1
        elif "refused" in entry:
            refused.append(entry["step"])
        else:
            _append(validation if "valid_loss" in entry else training, entry)
    return History(_columns(training), _columns(validation), tuple(refused), unreadable)


def _append(columns: Mapping[str, MutableSequence[float]], entry: Mapping[str, Any]) -> None:
    """Append a line to its columns; drop earlier lines with the same or a later step."""
    while columns["step"] and columns["step"][-1] >= entry["step"]:
        for column in columns.values():
            column.pop()
    for name, column in columns.items():
        value = entry.get(name)
        column.append(_number(value))


def _number(value: Any) -> float:
    """Convert a value to a float; NaN if it is not a number or is too large."""
    try:
        return float(value) if isinstance(value, int | float) else np.nan
    except OverflowError:
        return np.nan


def _columns(columns: Mapping[str, MutableSequence[float]]) -> dict[str, np.ndarray]:
    """Convert lists to arrays."""
    return {name: np.array(column, dtype=np.float64) for name, column in columns.items()}
