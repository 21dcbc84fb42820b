"""Minimum Bayes risk decoding over sampled translations."""

from dataclasses import replace

from heedful.evaluation.mbr_utility import utility
from heedful.search.mbr import minimum_bayes_risk
from heedful.translation.result import Translation


def least_risk(translation: Translation, n_best: int = 1) -> Translation:
    """
    Put the translation with the least risk first.

    Returns the translation; its score and its alternatives' scores are expected utilities (chrF) in
    percent. The method is that of Eikema and Aziz (2020). Equal samples count as often as they were
    drawn.
    """
    candidates = [translation, *translation.alternatives]
    ordered = minimum_bayes_risk([candidate.text for candidate in candidates], utility("chrf"))
    chosen: dict[str, Translation] = {}
    for number, expected in ordered:
        candidate = candidates[number]
        if candidate.text not in chosen and len(chosen) < n_best:
            chosen[candidate.text] = replace(candidate, score=expected, alternatives=())
    best, *others = chosen.values()
    return replace(best, alternatives=tuple(others))
