"""The training state of a run, without its weights."""

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
    """The time of a run over all its sittings."""

    earlier: float = 0.0
    """Seconds of earlier sittings."""
    _start: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Return the seconds of the run over all sittings, validation and checkpoints included."""
        return self.earlier + time.monotonic() - self._start


_LARGEST = 2**63
# Results of a validation by name: numbers, and texts for the reader.
Validation = dict[str, Any]


class StepTotals(NamedTuple):
    """Sums over the micro-batches of a step; one tensor, so that ranks add them up at once."""

    loss: float = 0.0
    """Smoothed loss, summed over target tokens."""
    nll: float = 0.0
    """Negative log-probability, summed over target tokens."""
    source_tokens: float = 0.0
    target_tokens: float = 0.0
    """Real tokens."""
    flops: float = 0.0
    """Operations forward and backward, padding included where it is computed."""
    needed_flops: float = 0.0
    """Operations that the real tokens alone would need."""
    stop_signals: float = 0.0
    """Number of ranks that got a signal to stop."""
    time_over: float = 0.0
    """1 if the planned minutes are over, by rank zero's clock."""
    checkpoint_requests: float = 0.0
    """Number of ranks that got a signal for a checkpoint."""
    penalty: float = 0.0
    """`Seq2Seq.penalty` times the target tokens of its micro-batch, summed; not in `loss`."""
    figure: float = 0.0
    """Sum of the figure after the loss in the log: rewards or risks of pairs, or divergences."""
    pairs: float = 0.0
    """Count that `figure` is divided by: pairs with candidates, or target tokens of two passes."""
    callback_stops: float = 0.0
    """1 if a callback of rank zero ends the run."""

    def plus(self, other: "StepTotals") -> "StepTotals":
        """Add two sums, field by field."""
        return StepTotals(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def as_tensor(self) -> Tensor:
        """Write the sums as one tensor; float64 counts tokens exactly up to 2^53."""
        return torch.tensor(self, dtype=torch.float64)

    @classmethod
    def from_tensor(cls, values: Tensor) -> "StepTotals":
        """Read what `as_tensor` wrote."""
        return cls(*values.tolist())


class LogSums(NamedTuple):
    """Sums since the last training line of the log."""

    loss: float = 0.0
    nll: float = 0.0
    """Summed over target tokens, as in `StepTotals`."""
    target_tokens: float = 0.0
    source_tokens: float = 0.0
    """Real tokens."""
    flops: float = 0.0
    """As in `StepTotals`."""
    seconds: float = 0.0
    """Time in steps."""
    penalty: float = 0.0
    figure: float = 0.0
    pairs: float = 0.0
    needed_flops: float = 0.0
    """As in `StepTotals`."""

    def plus(self, totals: StepTotals, seconds: float) -> "LogSums":
        """Add one step."""
        return LogSums(
            self.loss + totals.loss,
            self.nll + totals.nll,
            self.target_tokens + totals.target_tokens,
            self.source_tokens + totals.source_tokens,
            self.flops + totals.flops,
            self.seconds + seconds,
            self.penalty + totals.penalty,
            self.figure + totals.figure,
            self.pairs + totals.pairs,
            self.needed_flops + totals.needed_flops,
        )

    @property
    def padding(self) -> float:
        """The share of the operations that padding takes."""
        return 1.0 - self.needed_flops / self.flops if self.flops else 0.0


@dataclass
class Counters:
    """Totals of a run over all its sittings."""

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
    """Operations forward and backward; 0 for a run that an older version began."""
    seconds: float = 0.0
    """Time over all sittings."""

    def add(self, totals: StepTotals) -> None:
        """Count one more step of the current epoch."""
        if self.flops or not self.step:  # else a sum would lack the first steps
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
        """Read the counters; those that an older version did not count stay zero."""
        return cls(**{field.name: values.get(field.name, 0) for field in fields(cls)})


@dataclass
class TrainState:
    """All changing state of a run but weights and moments, from which `--resume` continues."""

    counters: Counters = field(default_factory=Counters)
    """Steps, tokens, position in the data."""
    best: list[Validation] = field(default_factory=list)
    """The best validations so far, best first."""
    without_better: int = 0
    """Validations since the best one."""
    decays: int = 0
    """How often schedule `plateau` has lowered the learning rate."""
    bad_validations: int = 0
    """Validations without a better one since the best one or the last decay."""
    since_log: LogSums = field(default_factory=LogSums)
    """Sums since the last training line of the log."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "TrainState":
        """Parse a checkpoint's `state.json`; raises `ValueError` for invalid content."""
        counters, best = values.get("counters"), values.get("best")
        since_log = values.get("since_log", list(LogSums()))
        expected = (
            isinstance(counters, dict)
            and all(_is_count(value) for name, value in counters.items() if name != "flops")
            and _is_number(counters.get("flops", 0))
            and _is_count(values.get("step"))
            and counters.get("step") == values["step"]
            and isinstance(best, list)
            and all(isinstance(entry, dict) and _is_count(entry.get("step")) for entry in best)
            and all(isinstance(one, int | float) for entry in best for one in entry.values())
            and all("valid_loss" in entry for entry in best)
            and _is_count(values.get("without_better"))
            and all(_is_count(values.get(name, 0)) for name in ("decays", "bad_validations"))
            and isinstance(since_log, list)
            and len(since_log) in (6, 7, 9, len(LogSums._fields))  # older ones lack the last
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
        )

    def decay_if_due(self, patience: int) -> bool:
        """
        Count the validation just remembered, as torch's ReduceLROnPlateau does.

        Returns whether the learning rate is lowered. `patience`: validations without a better
        result before the rate is lowered.
        """
        self.bad_validations = 0 if self.without_better == 0 else self.bad_validations + 1
        if self.bad_validations <= patience:
            return False
        self.decays, self.bad_validations = self.decays + 1, 0
        return True

    def remember(self, result: Validation, keep_best: int, best_by: str = "bleu") -> bool:
        """Keep a validation if it is among the best."""
        # Equal metrics are ordered by loss. The best one is always kept; of each, the numbers only.
        metric = METRICS[best_by]
        result = {key: value for key, value in result.items() if isinstance(value, int | float)}
        first = not self.best or _goodness(result, metric) > _goodness(self.best[0], metric)
        self.without_better = 0 if first else self.without_better + 1
        self.best.append(result)
        self.best.sort(key=lambda entry: _goodness(entry, metric), reverse=True)
        del self.best[max(keep_best, 1) :]
        return keep_best > 0 and result in self.best


@dataclass
class StopSignal:
    """Signals that request the end or a checkpoint; checked after each step."""

    reason: str = ""
    """Reason to end the run; empty while there is none."""
    checkpoint: bool = False
    """Whether to write a checkpoint and continue training."""


def _is_count(value: object) -> bool:
    """Whether a value is a non-negative 64-bit integer."""
    return isinstance(value, int | float) and 0 <= value < _LARGEST


def _is_number(value: object) -> bool:
    """Whether a value is a finite number of at least zero, possibly beyond 64 bits."""
    return isinstance(value, int | float) and 0 <= value < math.inf


def _goodness(result: Validation, metric: ValidationMetric) -> tuple[float, float]:
    """Sort key of validations: the metric, then the loss; NaN is the worst."""
    sign = 1 if metric.higher_is_better else -1
    values = sign * result.get(metric.key, math.nan), -result["valid_loss"]
    metric_value, loss = (-math.inf if math.isnan(value) else value for value in values)
    return metric_value, loss
