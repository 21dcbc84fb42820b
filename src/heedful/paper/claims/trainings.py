"""The small models that decide a claim, trained within a budget."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from heedful.evaluation.significance import Resampling, compare
from heedful.evaluation.sufficient_statistics import SufficientStatistics
from heedful.experiments.corpus import TableCorpus
from heedful.experiments.measured import MeasuredSystem, count_matches, read_output
from heedful.experiments.page import ScoreDifference
from heedful.translation.translator import Translator

RECIPE = "multi30k"
COMMON = (
    *("model.d_model=128", "model.dropout=0.1"),
    *("train.batch_tokens=1024", "train.schedule=cosine", "train.learning_rate=1.5e-3"),
    "train.batch_counting=padded",  # similar lengths share a batch, as in the rate measurement
    "train.clip_norm=1",
)
_PARTS = 4
_RESAMPLING = Resampling(trials=2_000)


class Trainings(NamedTuple):
    """The models of one claim, trained and scored."""

    systems: dict[str, MeasuredSystem]
    """The systems by name."""
    corpus: TableCorpus
    folder: Path
    threads: int = 0

    def translator(self, name: str) -> Translator:
        """Load a model."""
        return Translator.load(
            self.folder / "runs" / name, precision="fp32", device="cpu", threads=self.threads
        )

    @property
    def parts(self) -> dict[int, np.ndarray]:
        """Line indices of up to four parts of the test set, by a part's longest source in words."""
        words = [len(line.split()) for line in self.corpus.lines("test", self.corpus.source)]
        by_longest: dict[int, np.ndarray] = {}
        for part in np.array_split(np.argsort(words, kind="stable"), _PARTS):
            # two parts are merged if their longest sources have equally many words
            longest = words[int(part[-1])]
            by_longest[longest] = np.concatenate((by_longest.get(longest, part[:0]), part))
        return by_longest

    def bleu_by_length(self, name: str) -> tuple[float, ...]:
        """Return the BLEU on every part of the test set."""
        scored = self._count_ngrams(name)
        return tuple(
            float(scored.scores(scored.counts[lines].sum(axis=0, keepdims=True))[0])
            for lines in self.parts.values()
        )

    def difference(self, ours: str, theirs: str, longest: bool = False) -> ScoreDifference:
        """Compare two models' BLEU on the test set, or on its part with the longest sources."""
        lines = [*self.parts.values()][-1] if longest else slice(None)
        scored = [self._count_ngrams(name) for name in (ours, theirs)]
        first, second = (SufficientStatistics(side.metric, side.counts[lines]) for side in scored)
        (tested,) = compare([first], [second])
        first_title, second_title = (self.systems[name].title for name in (ours, theirs))
        return ScoreDifference(
            first_title, second_title, tested.difference, tested.interval, "BLEU"
        )

    def growth(self, ours: str, theirs: str) -> ScoreDifference | None:
        """
        Compare two models' BLEU difference on the longest sentences with that on the others.

        Returns None if all lines are equally long.
        """
        *others, longest = self.parts.values()
        if not others:
            return None
        scored = [self._count_ngrams(name) for name in (ours, theirs)]
        drawn = [
            _bootstrap_differences(scored, lines) for lines in (longest, np.concatenate(others))
        ]
        first, second = (self.systems[name].title for name in (ours, theirs))
        return ScoreDifference(first, second, *_with_interval(drawn[0] - drawn[1]), "BLEU")

    def growth_between(
        self, here: tuple[str, str], there: tuple[str, str]
    ) -> tuple[float, tuple[float, float]]:
        """
        Compare the difference within the pair `here` with that within `there`, on all sentences.

        Returns the first minus the second difference, and its 95% interval.
        """
        every = np.arange(len(self.corpus.lines("test", self.corpus.source)))
        drawn = [
            _bootstrap_differences(
                [self._count_ngrams(name) for name in pair], every
            )  # both pairs use the same bootstrap samples
            for pair in (here, there)
        ]
        return _with_interval(drawn[0] - drawn[1])

    def _count_ngrams(self, name: str) -> SufficientStatistics:
        """Count the n-grams of a model's test output, line by line."""
        return count_matches(read_output(name, "test", self.folder), "test", self.corpus)


def _with_interval(drawn: np.ndarray) -> tuple[float, tuple[float, float]]:
    """Return the first value, and the 95% interval of the bootstrap samples that follow it."""
    value, *samples = drawn
    low, high = np.quantile(samples, (0.025, 0.975)).tolist()
    return float(value), (low, high)


def _bootstrap_differences(scored: Sequence[SufficientStatistics], lines: np.ndarray) -> np.ndarray:
    """Compute the difference between two systems on some lines, then on bootstrap samples."""
    counts = np.hstack([side.counts[lines] for side in scored])
    sums = np.vstack([counts.sum(axis=0), *(s @ counts for s in _RESAMPLING.samples(len(lines)))])
    ours, theirs = np.split(sums, [scored[0].counts.shape[1]], axis=1)
    return scored[0].scores(ours) - scored[1].scores(theirs)
