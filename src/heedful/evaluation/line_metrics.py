"""
Exact match and character error rate, as sacreBLEU metrics.

::

    exact match = lines that are equal to a reference / lines
    CER         = edits of all lines / characters of all references

A character is a code point. Spaces at the ends of a line do not count, so CER is 0 if all lines
match.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics.base import Metric, Score, Signature

from heedful._version import __version__
from heedful.evaluation.edit_distance import edit_distance

References = Sequence[Sequence[Any]]
"""Sets of references; None, which sacreBLEU's type annotations omit, marks a missing reference."""


class _LineSignature(Signature):
    """The signature in sacreBLEU's notation."""

    def __init__(self, args: dict[str, Any]) -> None:
        super().__init__(args)
        self.update("case", "lc" if args["lowercase"] else "mixed")
        self.update("ends", "stripped")
        self.update("version", f"heedful-{__version__}")


class _LineMetric(Metric):
    """A ratio of two counts that are added up over the lines, in percent."""

    _SIGNATURE_TYPE = _LineSignature
    name: str

    def __init__(self, references: References, *, lowercase: bool = False) -> None:
        super().__init__()
        self.lowercase = lowercase
        self._ref_cache = self._cache_references(references)

    @abstractmethod
    def _count(self, text: str, references: Sequence[str]) -> tuple[float, float]:
        """Return the numerator and the denominator of the ratio."""

    def _preprocess_segment(self, sent: str) -> str:
        return (sent.lower() if self.lowercase else sent).strip()

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {"references": refs}

    def _compute_segment_statistics(
        self, hypothesis: str, ref_kwargs: dict[str, Any]
    ) -> list[float]:
        return [*self._count(hypothesis, ref_kwargs["references"])]

    def _compute_score_from_stats(self, stats: list[float]) -> Score:
        above, below = stats
        if not below:  # like TER with empty references: 100 if there are edits, else 0
            return Score(self.name, 100.0 if above else 0.0)
        return Score(self.name, 100 * above / below)

    def _aggregate_and_compute(self, stats: list[list[float]]) -> Score:
        return self._compute_score_from_stats([sum(column) for column in zip(*stats, strict=True)])


class ExactMatch(_LineMetric):
    """The percentage of translations that equal one of their references."""

    name = "exact match"

    def _count(self, text: str, references: Sequence[str]) -> tuple[float, float]:
        return float(text in references), 1.0


class CharacterErrorRate(_LineMetric):
    """
    The edits of all lines per hundred characters of the references.

    With several references, edits are counted against the nearest reference and divided by the mean
    length of the references, as in TER.
    """

    name = "CER"

    def _count(self, text: str, references: Sequence[str]) -> tuple[float, float]:
        edits = min(edit_distance(text, reference) for reference in references)
        return float(edits), sum(map(len, references)) / len(references)
