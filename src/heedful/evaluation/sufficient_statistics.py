"""
A metric's counts, line by line: enough for its score on any selection of the lines.

BLEU, chrF and TER are all made of sums: matching and possible n-grams, lengths, edits. Counted once
for every line, they give the score of the whole, of a bootstrap sample, or of two systems with
some of their lines exchanged, without looking at the text again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from sacrebleu.metrics.base import Metric

from heedful.errors import TextError


@dataclass(frozen=True)
class MetricScore:  # numpydoc ignore=PR02
    """
    One figure and how it was made.

    Attributes
    ----------
    score : float
        The score in percent; COMET's on its own scale, where 1 is about the best.
    signature : str
        The settings and the version that made it, in sacreBLEU's notation.
    interval : tuple of (float, float) or None
        The 95 % confidence interval, if it was asked for.
    """

    score: float
    signature: str
    interval: tuple[float, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """
        Give the figure as plain values.

        Returns
        -------
        dict
            The “score”, its “signature” and, where there is one, its “interval”.

        Notes
        -----
        The shape is part of the command line's contract: ``evaluate --json`` prints it.
        """
        plain: dict[str, Any] = {"score": self.score, "signature": self.signature}
        return plain if self.interval is None else {**plain, "interval": list(self.interval)}


@dataclass(frozen=True)
class SufficientStatistics:  # numpydoc ignore=PR02
    """
    What a metric counted in one system's translations.

    Attributes
    ----------
    metric : Metric
        One of sacreBLEU's, which turns sums of counts into a score.
    counts : ndarray of float, shape (lines, counts)
        Its statistics of every line.
    """

    metric: Metric
    counts: Float[np.ndarray, "lines counts"]

    @property
    def score(self) -> float:
        """The score of all lines together, in percent."""
        return float(self.scores(self.counts.sum(axis=0, keepdims=True))[0])

    @property
    def signature(self) -> str:
        """The metric's settings and version."""
        return str(self.metric.get_signature())

    def scores(
        self, sums: Float[np.ndarray, "selections counts"]
    ) -> Float[np.ndarray, " selections"]:
        """
        Turn sums over some of the lines into their scores.

        Parameters
        ----------
        sums : ndarray of float, shape (selections, counts)
            Each row the sum of the counts of one selection.

        Returns
        -------
        ndarray of float, shape (selections)
            The score of each selection in percent.

        Notes
        -----
        sacreBLEU's own formula does it, so that no second one can differ from it. The sums of
        whole numbers are exact in double precision, hence so is the score.
        """
        return np.array([self.metric._compute_score_from_stats(row).score for row in sums.tolist()])


def measure(metric: Metric, hypotheses: Sequence[str]) -> SufficientStatistics:
    """
    Count what a metric needs, line by line.

    Parameters
    ----------
    metric : Metric
        One of sacreBLEU's that was made with its references.
    hypotheses : sequence of str
        The translations, one line for every line of the references.

    Returns
    -------
    SufficientStatistics
        The counts of all lines.

    Raises
    ------
    TextError
        If there is not one line for every line of the references.

    Notes
    -----
    sacreBLEU keeps these statistics to its own significance tests; this file is the one place
    here that reaches for them.
    """
    if len(hypotheses) != len(metric._ref_cache or ()):
        raise TextError(
            f"Every translated line needs its reference, but there are {len(hypotheses)} "
            f"hypotheses and {len(metric._ref_cache or ())} lines of references."
        )
    counts = metric._extract_corpus_statistics(hypotheses, None)
    return SufficientStatistics(metric, np.array(counts, dtype=np.float64))
