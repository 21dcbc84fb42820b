"""
Minimum Bayes risk decoding: the choice of the candidate with the highest expected utility.

The most probable translation of a model is often unusual, while samples of the model mostly
resemble each other. Every sample counts as a possible reference. The utility is a measure such as
chrF (Eikema and Aziz 2020, “Is MAP Decoding All You Need?”).
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

PairUtility = Callable[[str, str], float]
"""Maps a translation and a reference to the translation's quality; higher is better."""
Utility = Callable[[Sequence[str], Sequence[str]], np.ndarray]
"""Maps translations and references to a table of utilities, one row for each translation."""


def pairwise(utility: PairUtility) -> Utility:
    """Convert a metric on pairs to a function that computes a table of utilities."""

    def table(translations: Sequence[str], references: Sequence[str]) -> np.ndarray:
        rows = [
            [utility(translation, reference) for reference in references]
            for translation in translations
        ]
        return np.array(rows, dtype=float).reshape(len(translations), len(references))

    return table


def minimum_bayes_risk(
    candidates: Sequence[str],
    utility: Utility,
    weights: Sequence[float] | None = None,
    references: Sequence[str] | None = None,
) -> list[tuple[int, float]]:
    """
    Order candidates by their expected utility.

    `weights`: weight of each reference, at least 0 and not all 0; equal if None, as for samples.
    `references`: possible translations to compare with; the candidates themselves if None. Returns
    the index and expected utility of each candidate, best first; ties keep their order.

    Repeated samples count as often as they were drawn, but are compared only once. By default each
    candidate is also its own reference, which does not change the order if weights are equal.
    """
    imagined = candidates if references is None else references
    shares = _shares(weights, len(imagined))
    texts, places = _distinct(candidates)
    others, owners = _distinct(imagined)
    mass = np.bincount(owners, weights=shares, minlength=len(others))
    expected: Float[np.ndarray, " texts"] = utility(texts, others) @ mass
    ranked = [(number, float(expected[place])) for number, place in enumerate(places)]
    return sorted(ranked, key=lambda item: (-item[1], item[0]))


def _shares(weights: Sequence[float] | None, count: int) -> Float[np.ndarray, " references"]:
    """Normalize weights to sum to one."""
    masses = np.ones(count) if weights is None else np.asarray(weights, dtype=float)
    if masses.shape != (count,) or not count:
        raise ValueError(
            f"there must be references, and a weight for each, but got {count} references and "
            f"{masses.size} weights"
        )
    if not np.isfinite(masses).all() or (masses < 0).any() or not masses.any():
        raise ValueError("weights must be finite and at least 0, and at least one must be above 0")
    return masses / masses.sum()


def _distinct(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """List the distinct texts, and the index of each text among them."""
    numbers: dict[str, int] = {}
    places = [numbers.setdefault(text, len(numbers)) for text in texts]
    return list(numbers), places
