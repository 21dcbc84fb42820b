"""Everything about a run that changes while it trains, weights aside."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from heedful.training.validation_metrics import METRICS, ValidationMetric

_LARGEST = 2**63
# What a validation found, by name: numbers, and what a person may want to read.
Validation = dict[str, Any]


@dataclass
class Counters:
    """
    Count what a run has done, over all its sittings.

    Attributes
    ----------
    step : int
        Steps taken.
    epoch : int
        Passes over the data that are finished.
    position : int
        Batches of the current epoch that are done.
    source_tokens, target_tokens : int
        Real tokens trained on.
    source_places, target_places : int
        Places computed, padding included.
    encoder_pairs, decoder_pairs, cross_pairs : int
        Pairs of a place that asks and one that may answer, padding included.
    seconds : float
        Time since the start, sittings added up.

    Notes
    -----
    With the weights and Adam's moments this is all that resuming needs: order and randomness are
    functions of the seed and these numbers.
    """

    step: int = 0
    epoch: int = 0
    position: int = 0
    source_tokens: int = 0
    target_tokens: int = 0
    source_places: int = 0
    target_places: int = 0
    encoder_pairs: int = 0
    decoder_pairs: int = 0
    cross_pairs: int = 0
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the counters by name, for a checkpoint's `state.json`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Counters":
        """Read them again; what an older run did not count stays at zero."""
        return cls(**{field.name: values.get(field.name, 0) for field in fields(cls)})


@dataclass
class TrainState:
    """
    Hold everything about a run that changes while it trains, weights aside.

    Attributes
    ----------
    counters : Counters
        Steps, tokens, position in the data.
    best : list of dict
        The best validations so far, best first.
    without_better : int
        Validations since the best one.
    since_log : list of float
        Sums since the last training line of the log: loss, log-probability, target, source and
        padded tokens, seconds in steps.

    Notes
    -----
    Saved with every checkpoint.
    """

    counters: Counters = field(default_factory=Counters)
    best: list[Validation] = field(default_factory=list)
    without_better: int = 0
    since_log: list[float] = field(default_factory=lambda: [0.0] * 6)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "TrainState":
        """Read what a checkpoint's `state.json` says; raises `ValueError` for anything else."""
        counters, best = values.get("counters"), values.get("best")
        since_log = values.get("since_log", [0.0] * 6)
        expected = (
            isinstance(counters, dict)
            and all(_is_count(value) for value in (*counters.values(), values.get("step")))
            and counters.get("step") == values["step"]
            and isinstance(best, list)
            and all(isinstance(entry, dict) and _is_count(entry.get("step")) for entry in best)
            and all(isinstance(one, int | float) for entry in best for one in entry.values())
            and all("valid_loss" in entry for entry in best)
            and _is_count(values.get("without_better"))
            and isinstance(since_log, list)
            and len(since_log) == 6
            and all(isinstance(number, int | float) for number in since_log)
        )
        if not expected:
            raise ValueError("counters, best, without_better or since_log are not what they were")
        return cls(
            Counters.from_dict(counters or {}), best or [], values["without_better"], since_log
        )

    def remember(self, result: Validation, keep_best: int, best_by: str = "bleu") -> bool:
        """
        Keep a validation if it is among the best.

        Parameters
        ----------
        result : dict of str to float
            As it is logged.
        keep_best : int
            How many of the best have a checkpoint of their own.
        best_by : str, default 'bleu'
            What decides, one of `METRICS`.

        Returns
        -------
        bool
            Whether this one is to have one.

        Notes
        -----
        The loss decides between equals. The best one is always remembered; of each, the numbers.
        """
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
    """Let a signal ask for the end or for a checkpoint; looked at after each step."""

    reason: str = ""
    """Why the run is to end; empty while nobody has asked."""
    checkpoint: bool = False
    """Whether a checkpoint is to be written, and training to go on."""


def _is_count(value: object) -> bool:
    """Whether a value is a number from 0 to what 64 bits hold."""
    return isinstance(value, int | float) and 0 <= value < _LARGEST


def _goodness(result: Validation, metric: ValidationMetric) -> tuple[float, float]:
    """Order validations: the better metric first, then the lower loss."""
    sign = 1 if metric.higher_is_better else -1
    return sign * result.get(metric.key, -sign * math.inf), -result["valid_loss"]
