"""
Sufficient statistics of a metric per line, for its score on any selection of lines.

BLEU, chrF and TER are all computed from sums: matching and possible n-grams, lengths, edits. These
quantities are counted once for every line. Their sums give the score of the whole text, of a
bootstrap sample, or of two systems with some lines exchanged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float
from sacrebleu.metrics.base import Metric

from heedful.errors import TextError


@dataclass(frozen=True)
class MetricScore:  # numpydoc ignore=PR02
    """A score and its signature."""

    score: float
    """The score in percent; COMET's score is on its own scale, where the best scores are near 1."""
    signature: str
    """The settings and version of the metric, in sacreBLEU's notation."""
    interval: tuple[float, float] | None = None
    """The 95% confidence interval, if requested."""

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values."""
        plain: dict[str, Any] = {"score": self.score, "signature": self.signature}
        return plain if self.interval is None else {**plain, "interval": list(self.interval)}


@dataclass(frozen=True)
class SufficientStatistics:  # numpydoc ignore=PR02
    """Sufficient statistics of a metric for one system's translations."""

    metric: Metric | None
    """Metric of sacreBLEU that turns sums into a score; None for the bracket scores of parses."""
    counts: Float[np.ndarray, "lines counts"]

    @property
    def score(self) -> float:
        """Score of all lines together, in percent."""
        return float(self.scores(self.counts.sum(axis=0, keepdims=True))[0])

    @property
    def signature(self) -> str:
        """The metric's settings and version."""
        return "" if self.metric is None else str(self.metric.get_signature())

    def scores(
        self, sums: Float[np.ndarray, "selections counts"]
    ) -> Float[np.ndarray, " selections"]:
        """
        Convert sums over some of the lines to scores.

        Returns the score of each selection in percent.

        Uses sacreBLEU's own formula, so the scores equal sacreBLEU's. Sums of integers are exact in
        double precision, so the sums add no error.
        """
        assert self.metric is not None
        compute = self.metric._compute_score_from_stats
        # Sums of few lines repeat, and sacreBLEU's formula is slow: compute each score once.
        score = cache(lambda row: compute([*row]).score)
        return np.array([score(row) for row in map(tuple, sums.tolist())])


def measure(metric: Metric, hypotheses: Sequence[str]) -> SufficientStatistics:
    """
    Compute the sufficient statistics of a metric, line by line.

    sacreBLEU keeps these statistics private to its own significance tests; only this module of
    heedful accesses them.

    Raises `TextError` if translations and references differ in the number of lines.
    """
    if len(hypotheses) != len(metric._ref_cache or ()):
        raise TextError(
            f"Every translated line needs its reference, but there are {len(hypotheses)} "
            f"hypotheses and {len(metric._ref_cache or ())} lines of references."
        )
    counts = metric._extract_corpus_statistics(hypotheses, None)
    return SufficientStatistics(metric, np.array(counts, dtype=np.float64))
