"""Minimum Bayes risk among translations."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, TypeVar, runtime_checkable

from heedful.evaluation.mbr_utility import utility
from heedful.search.mbr import minimum_bayes_risk
from heedful.translation.result import Translation


@runtime_checkable
class RatedCandidate(Protocol):
    """Anything with a text, such as a `Translation`; other fields are returned unchanged."""

    @property
    def text(self) -> str:
        """The text to compare."""


AnyCandidate = TypeVar("AnyCandidate", bound=RatedCandidate)


def choose_by_risk(
    candidates: Sequence[AnyCandidate],
    by: str = "chrf",
    weights: Sequence[float] | None = None,
    language: str = "",
) -> list[tuple[AnyCandidate, float]]:
    """
    Order translations of a line by minimum Bayes risk.

    Returns the translations with their expected utilities in percent, best first.

    The method is that of Eikema and Aziz (2020). Equal samples count as often as they were drawn.
    """
    ordered = minimum_bayes_risk(
        [candidate.text for candidate in candidates], utility(by, language), weights
    )
    return [(candidates[number], expected) for number, expected in ordered]


def least_risk(
    translation: Translation, n_best: int = 1, by: str = "chrf", language: str = ""
) -> Translation:
    """
    Put the translation with the least risk first.

    Returns the translation; its score and those of its alternatives are expected utilities in
    percent.
    """
    ordered = choose_by_risk([translation, *translation.alternatives], by, language=language)
    chosen: dict[str, Translation] = {}
    for candidate, expected in ordered:
        if candidate.text not in chosen and len(chosen) < n_best:
            chosen[candidate.text] = replace(candidate, score=expected, alternatives=())
    best, *others = chosen.values()
    return replace(best, alternatives=tuple(others))
