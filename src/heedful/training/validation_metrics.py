"""Validation metrics, and which direction is better."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ValidationMetric:
    """A number by which validations are compared."""

    key: str
    """Its name in `log.jsonl`."""
    label: str
    """Its name for people."""
    higher_is_better: bool
    """Whether 30 is better than 20."""


METRICS = {
    "bleu": ValidationMetric("bleu", "BLEU", True),
    "chrf": ValidationMetric("chrf", "chrF", True),
    "exact_match": ValidationMetric("exact_match", "exact match", True),
    "cer": ValidationMetric("cer", "CER", False),
    "f1": ValidationMetric("f1", "F1", True),
    "loss": ValidationMetric("valid_loss", "loss", False),
}
"""By the names that `train.best_by` has for them."""

SCORES = tuple(metric for name, metric in METRICS.items() if name != "loss")
"""Those that compare translations with references."""
