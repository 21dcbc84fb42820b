"""Minimum Bayes risk among translations."""

from collections.abc import Sequence
from typing import Protocol, TypeVar, runtime_checkable

from heedful.evaluation.utility import utility
from heedful.search.risk import minimum_bayes_risk


@runtime_checkable
class Candidate(Protocol):
    """
    What can be chosen: anything with a text, such as a `Translation`.

    Notes
    -----
    What else it holds comes back with it.
    """

    @property
    def text(self) -> str:
        """What is compared."""


AnyCandidate = TypeVar("AnyCandidate", bound=Candidate)


def choose_by_risk(
    candidates: Sequence[AnyCandidate], by: str = "chrf", weights: Sequence[float] | None = None
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

    Returns
    -------
    list of (Translation, float)
        Each with its expected utility in percent, best first.

    Notes
    -----
    Eikema and Aziz (2020). Samples that read the same count as often as they were drawn.
    """
    ordered = minimum_bayes_risk([each.text for each in candidates], utility(by), weights)
    return [(candidates[number], expected) for number, expected in ordered]
