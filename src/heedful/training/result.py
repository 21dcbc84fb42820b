"""The result of training."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from heedful.errors import RunFolderError
from heedful.settings.registries import METRICS, score_metrics
from heedful.training.history import read_history
from heedful.visualise.small_curves import SmallCurve, small_curves

_TRAINING, _VALIDATION, _SCORES = "#0072b2", "#d55e00", ("#009e73", "#cc79a7", "#e69f00")


@dataclass(frozen=True)
class TrainingCurve:
    """Losses and scores during training as arrays, for your own plots."""

    steps: Float64[np.ndarray, " lines"]
    """The step of each line of the log."""
    losses: Float64[np.ndarray, " lines"]
    """Training loss per target token in nats, without label smoothing, as in validation."""
    valid_steps: Float64[np.ndarray, " validations"]
    """Steps of the validations."""
    valid_losses: Float64[np.ndarray, " validations"]
    """Loss on the validation pairs."""
    scores: Mapping[str, Float64[np.ndarray, " validations"]]
    """Scores of the validations, such as ``bleu``; NaN where a score is missing."""


@dataclass(frozen=True)
class TrainingResult:
    """
    The result of training: how it ended, and what it produced.

    Notes
    -----
    Functions that take a run folder also take this result. A notebook shows the result with curves
    of loss and scores.
    """

    reason: str
    """Why training ended: steps, minutes or patience ran out, or the reason a callback gave."""
    run: Path
    """The run folder, for `Translator.load`."""
    step: int
    """Number of steps of the run, including the steps before it was resumed."""
    best: tuple[dict[str, Any], ...]
    """The best validations, best first: step, valid_loss, bleu; empty without held-out text."""
    log: Path
    """The log file, with one JSON object per line."""

    @cached_property
    def curve(self) -> TrainingCurve:
        """Losses and scores by step, read from the log; empty if the log does not exist."""
        try:
            history = read_history(self.log)
        except RunFolderError:
            nothing = np.empty(0)
            return TrainingCurve(nothing, nothing, nothing, nothing, {})
        training, validation = history.training, history.validation
        scores = {
            metric.key: validation[metric.key]
            for metric in score_metrics()
            if np.isfinite(validation[metric.key]).any()
        }
        return TrainingCurve(
            training["step"],
            np.where(np.isfinite(training["nll"]), training["nll"], training["loss"]),
            validation["step"],
            validation["valid_loss"],
            scores,
        )

    def __fspath__(self) -> str:
        """Return the run folder, so that a result can be used as a path."""
        return str(self.run)

    def __repr__(self) -> str:
        words = [f"ended by {self.reason} at step {self.step:,}"]
        finite = self.curve.losses[np.isfinite(self.curve.losses)]
        if len(finite):
            words.append(f"loss {finite[-1]:.3f}")
        if self.best:
            words.append(self._best_words())
        return f"TrainingResult({str(self.run)!r}, {', '.join(words)})"

    def _best_words(self) -> str:
        """Describe the best validation by its first score, or its loss, and its step."""
        best = self.best[0]
        metric = next(
            (candidate for candidate in score_metrics() if candidate.key in best), METRICS["loss"]
        )
        step, value = best["step"], best.get(metric.key)
        if value is None:
            return f"best validation at step {step:,}"
        name = "validation loss" if metric is METRICS["loss"] else metric.label
        digits = 3 if metric is METRICS["loss"] else 1
        return f"best {name} {value:.{digits}f} at step {step:,}"

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: `repr`, and the curves of loss and scores."""
        curve = self.curve
        losses = [
            SmallCurve("training loss", curve.steps, curve.losses, _TRAINING),
            SmallCurve(
                "validation loss", curve.valid_steps, curve.valid_losses, _VALIDATION, has_dots=True
            ),
        ]
        labels = {metric.key: metric.label for metric in score_metrics()}
        scores = [
            SmallCurve(labels[key], curve.valid_steps, values, color, has_dots=True)
            for (key, values), color in zip(curve.scores.items(), _SCORES, strict=False)
        ]
        return f"<div>{escape(repr(self))}</div>{small_curves([losses, scores])}"
