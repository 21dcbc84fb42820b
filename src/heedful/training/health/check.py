"""
The interface of a check of a training: measurement, threshold, warning and remedy.

::

    held-out pairs ── measure ── figures ── a line of the log
                                    └────── warning, once, when they are past the threshold

A check is one module and one line of `heedful.training.health.registry`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from heedful.data.batching import Batch
from heedful.model.encoder_decoder import EncoderDecoder

Figures = Mapping[str, float]


@dataclass(frozen=True)
class HeldOutSample:
    """Some held-out pairs, in batches of like length, and the model that is checked."""

    model: EncoderDecoder
    batches: tuple[Batch, ...]


class HealthCheck(Protocol):
    """A check of a model in training."""

    name: str
    """Key of its figures in a validation line of the log."""

    def measure(self, sample: HeldOutSample) -> Figures | None:
        """Measure a model in evaluation mode; None if there is nothing to measure."""
        ...

    def warning(self, figures: Figures) -> str | None:
        """Say what is wrong and what to try; None if nothing is wrong."""
        ...

    def summary(self, figures: Figures) -> str:
        """Describe the figures in a line."""
        ...
