"""Minimum Bayes risk among translations."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, TypeVar, runtime_checkable

from heedful.evaluation.mbr_utility import utility
from heedful.search.mbr import minimum_bayes_risk
from heedful.translation.result import Translation


@runtime_checkable
class RatedCandidate(Protocol):
    """
    What can be chosen: anything with a text, such as a `Translation`.

    Notes
    -----
    What else it holds comes back with it.
    """

    @property
    def text(self) -> str:
        """What is compared."""


AnyCandidate = TypeVar("AnyCandidate", bound=RatedCandidate)


def choose_by_risk(
    candidates: Sequence[AnyCandidate],
    by: str = "chrf",
    weights: Sequence[float] | None = None,
    language: str = "",
) -> list[tuple[AnyCandidate, float]]:
    """
    Order translations of a line by how much the others agree with them.

    Parameters
    ----------
    candidates : sequence of Translation
        Samples, or the best hypotheses of a search.
    by : {'chrf', 'bleu'}, default 'chrf'
        The measure of agreement.
    weights : sequence of float, optional
        How much each candidate counts as a reference: nothing for samples, which come as often as
        they are probable; probabilities for hypotheses of a beam.
    language : str, default ""
        Code of the target language, which chooses the tokeniser of BLEU.

    Returns
    -------
    list of (Translation, float)
        Each with its expected utility in percent, best first.

    Notes
    -----
    Eikema and Aziz (2020). Samples that read the same count as often as they were drawn.
    """
    ordered = minimum_bayes_risk([each.text for each in candidates], utility(by, language), weights)
    return [(candidates[number], expected) for number, expected in ordered]


def least_risk(
    translation: Translation, n_best: int = 1, by: str = "chrf", language: str = ""
) -> Translation:
    """
    Put the translation that agrees best with its alternatives first.

    Parameters
    ----------
    translation : Translation
        With samples as its alternatives.
    n_best : int, default 1
        How many to keep; no text is kept twice.
    by : {'chrf', 'bleu'}, default 'chrf'
        The measure of agreement.
    language : str, default ""
        Code of the target language, which chooses the tokeniser of BLEU.

    Returns
    -------
    Translation
        Its score is the expected agreement in percent, as are those of its alternatives.

    Notes
    -----
    The log-probability stays the model's.
    """
    ordered = choose_by_risk([translation, *translation.alternatives], by, language=language)
    kept: dict[str, Translation] = {}
    for candidate, expected in ordered:
        if candidate.text not in kept and len(kept) < n_best:
            kept[candidate.text] = replace(candidate, score=expected, alternatives=())
    best, *others = kept.values()
    return replace(best, alternatives=tuple(others))
