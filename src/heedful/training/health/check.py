"""
The interface of a check of a training: measurement, and a warning past a threshold.

::

    held-out pairs ── measure ── figures ── a line of the log
                                    └────── warning, once, when figures are past the threshold

A check is a module and a line in `heedful.training.health.registry`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from heedful.data.batching import Batch
from heedful.model.encoder_decoder import EncoderDecoder

Figures = Mapping[str, float]


@dataclass(frozen=True)
class HeldOutSample:
    """A sample of held-out pairs, in batches of similar length, and the model to check."""

    model: EncoderDecoder
    batches: tuple[Batch, ...]


class HealthCheck(Protocol):
    """The interface of a check of a model in training."""

    name: str
    """Key of the check's figures in a validation line of the log."""

    def measure(self, sample: HeldOutSample) -> Figures | None:
        """Measure a model in evaluation mode; None if there is nothing to measure."""
        ...

    def warning(self, figures: Figures) -> str | None:
        """Return a warning with the problem and remedies; None if there is no problem."""
        ...

    def summary(self, figures: Figures) -> str:
        """Describe the figures in a line."""
        ...
