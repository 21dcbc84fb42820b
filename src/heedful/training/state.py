"""The training state of a run, apart from weights and moments."""

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

import torch
from torch import Tensor

from heedful.settings.registries import METRICS, ValidationMetric


@dataclass
class Clock:
    """The clock of a run, which continues when the run is resumed."""

    earlier: float = 0.0
    """Number of seconds of the run before it was last resumed."""
    _start: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Number of seconds of the run in all sessions, validations and checkpoints included."""
        return self.earlier + time.monotonic() - self._start


_LARGEST = 2**63
_COUNTS = ("step", "epoch", "position", "source_tokens", "target_tokens")
# Results of a validation by name: numbers and sample texts.
Validation = dict[str, Any]


class StepTotals(NamedTuple):
    """Sums over the micro-batches of a step, which ranks add up as one tensor."""

    loss: float = 0.0
    """Smoothed loss, summed over target tokens."""
    nll: float = 0.0
    """Negative log-probability, summed over target tokens."""
    source_tokens: float = 0.0
    target_tokens: float = 0.0
    """Real tokens."""
    flops: float = 0.0
    """Operations of all passes and searches, padding included if it is computed."""
    needed_flops: float = 0.0
    """Operations that the real tokens need, without padding."""
    stop_signals: float = 0.0
    """Number of ranks that received a signal to stop."""
    time_over: float = 0.0
    """1 if the planned minutes are over according to rank zero's clock, else 0."""
    checkpoint_requests: float = 0.0
    """Number of ranks that received a signal for a checkpoint."""
    penalty: float = 0.0
    """Penalties of the model and of guided attention, summed over target tokens; not in `loss`."""
    figure: float = 0.0
    """Sum of the objective's figure in the log: rewards or risks of pairs, or divergences."""
    pairs: float = 0.0
    """Divisor of `figure`: number of pairs (candidates) or of target tokens (two passes)."""
    callback_stops: float = 0.0
    """1 if a callback of rank zero ends the run, else 0."""

    def plus(self, added: "StepTotals") -> "StepTotals":
        """Add two sums, field by field."""
        return StepTotals(*(mine + theirs for mine, theirs in zip(self, added, strict=True)))

    def as_tensor(self) -> Tensor:
        """Return the sums as one tensor; float64 counts tokens exactly up to 2^53."""
        return torch.tensor(self, dtype=torch.float64)

    @classmethod
    def from_tensor(cls, values: Tensor) -> "StepTotals":
        """Read the sums from a tensor of `as_tensor`."""
        return cls(*values.tolist())


class LogSums(NamedTuple):
    """Sums since the last training line of the log."""

    loss: float = 0.0
    nll: float = 0.0
    """Negative log-probability, summed over target tokens, as in `StepTotals`."""
    target_tokens: float = 0.0
    source_tokens: float = 0.0
    """Real tokens."""
    flops: float = 0.0
    """As in `StepTotals`."""
    seconds: float = 0.0
    """Time of the steps."""
    penalty: float = 0.0
    figure: float = 0.0
    pairs: float = 0.0
    needed_flops: float = 0.0
    """As in `StepTotals`."""

    def plus(self, totals: StepTotals, seconds: float) -> "LogSums":
        """Add the sums and the duration of one step."""
        added = {**totals._asdict(), "seconds": seconds}
        return LogSums(*(mine + added[name] for name, mine in self._asdict().items()))

    @property
    def padding(self) -> float:
        """Share of the operations that are spent on padding."""
        return 1.0 - self.needed_flops / self.flops if self.flops else 0.0


@dataclass
class Counters:
    """Totals of a run, including the steps before it was resumed."""

    step: int = 0
    """Steps taken."""
    epoch: int = 0
    """Finished passes over the data."""
    position: int = 0
    """Finished batches of the current epoch."""
    source_tokens: int = 0
    target_tokens: int = 0
    """Real tokens trained on."""
    flops: int = 0
    """Operations of all passes and searches; 0 for a run that an older version began."""
    seconds: float = 0.0
    """Time of the run in all sessions."""

    def add(self, totals: StepTotals) -> None:
        """Count one more step of the current epoch."""
        if self.flops or not self.step:  # otherwise the sum would lack the first steps
            self.flops += int(totals.flops)
        self.step += 1
        self.position += 1
        for name in ("source_tokens", "target_tokens"):
            setattr(self, name, getattr(self, name) + int(getattr(totals, name)))

    def to_dict(self) -> dict[str, Any]:
        """Return the counters by name, for a checkpoint's `state.json`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Counters":
        """Read the counters; counters that an older version did not write stay zero."""
        return cls(**{field.name: values.get(field.name, 0) for field in fields(cls)})


@dataclass
class TrainState:
    """The state from which `--resume` continues, apart from weights and moments."""

    counters: Counters = field(default_factory=Counters)
    """Steps, tokens, and position in the data."""
    best: list[Validation] = field(default_factory=list)
    """The best validations so far, best first."""
    without_better: int = 0
    """Number of regular validations since the best regular one."""
    decays: int = 0
    """Number of decays of the learning rate that validations have caused."""
    bad_validations: int = 0
    """Number of regular validations since the best one or the last decay."""
    since_log: LogSums = field(default_factory=LogSums)
    """Sums since the last training line of the log."""
    best_regular: Validation | None = None
    """The best validation so far except for extra ones at the end of a session."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "TrainState":
        """Parse a checkpoint's `state.json`; raises `ValueError` for invalid content."""
        counters, best = values.get("counters"), values.get("best")
        since_log = values.get("since_log", list(LogSums()))
        expected = (
            isinstance(counters, dict)
            and all(_is_number(counters.get(name, 0)) for name in ("flops", "seconds"))
            and all(_is_count(counters.get(name, 0)) for name in _COUNTS)
            and _is_count(values.get("step"))
            and counters.get("step") == values["step"]
            and isinstance(best, list)
            and all(map(_is_validation, best))
            and (values.get("best_regular") is None or _is_validation(values["best_regular"]))
            and _is_count(values.get("without_better"))
            and all(_is_count(values.get(name, 0)) for name in ("decays", "bad_validations"))
            and isinstance(since_log, list)
            and len(since_log) in (6, 7, 9, len(LogSums._fields))  # older runs lack the last fields
            and all(isinstance(number, int | float) for number in since_log)
        )
        if not expected:
            raise ValueError("counters, best, without_better or since_log are invalid")
        return cls(
            Counters.from_dict(counters or {}),
            best or [],
            values["without_better"],
            values.get("decays", 0),
            values.get("bad_validations", 0),
            LogSums(*since_log),
            values.get("best_regular", best[0] if best else None),  # older runs lack it
        )

    def decay_if_due(self, patience: int) -> bool:
        """
        Count the last remembered validation, like torch's ReduceLROnPlateau.

        Returns whether the learning rate is lowered. `patience`: number of validations without a
        better result that do not yet lower the rate.
        """
        self.bad_validations = 0 if self.without_better == 0 else self.bad_validations + 1
        if self.bad_validations <= patience:
            return False
        self.decays, self.bad_validations = self.decays + 1, 0
        return True

    def remember(
        self, result: Validation, keep_best: int, best_by: str = "bleu", is_regular: bool = True
    ) -> bool:
        """
        Keep a validation if it is among the best; return whether its checkpoint must be kept.

        `is_regular`: false for an extra validation at the end of a session, which an uninterrupted
        run does not have. So later validations are not compared with it.
        """
        # Validations with equal metrics are ordered by loss. The best entry is always kept. Entries
        # contain only numbers.
        metric = METRICS[best_by]
        result = {key: value for key, value in result.items() if isinstance(value, int | float)}
        best = self.best_regular
        if is_regular and (best is None or _goodness(result, metric) > _goodness(best, metric)):
            self.best_regular, self.without_better = result, 0
        elif is_regular:
            self.without_better += 1
        self.best.append(result)
        self.best.sort(key=lambda entry: _goodness(entry, metric), reverse=True)
        del self.best[max(keep_best, 1) :]
        return keep_best > 0 and result in self.best


@dataclass
class StopSignal:
    """Requests by signals to end the run or write a checkpoint, checked after each step."""

    reason: str = ""
    """Reason to end the run; empty if there is none."""
    checkpoint: bool = False
    """Whether to write a checkpoint and continue training."""


def _is_count(value: object) -> bool:
    """Return whether a value is an integer from 0 to 2^63 - 1."""
    return type(value) is int and 0 <= value < _LARGEST


def _is_number(value: object) -> bool:
    """Return whether a value is a finite number of at least zero, possibly beyond 64 bits."""
    return isinstance(value, int | float) and 0 <= value < math.inf


def _is_validation(entry: object) -> bool:
    """Return whether a value can be a remembered validation: a step, a loss and other numbers."""
    return (
        isinstance(entry, dict)
        and _is_count(entry.get("step"))
        and "valid_loss" in entry
        and all(isinstance(value, int | float) for value in entry.values())
    )


def _goodness(result: Validation, metric: ValidationMetric) -> tuple[float, float]:
    """Return the sort key of a validation: the metric, then the loss; NaN is the worst."""
    sign = 1 if metric.higher_is_better else -1
    values = sign * result.get(metric.key, math.nan), -result["valid_loss"]
    metric_value, loss = (-math.inf if math.isnan(value) else value for value in values)
    return metric_value, loss
