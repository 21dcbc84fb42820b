"""
Positional encodings, and four criteria to compare them.

The candidates are the index of a position, a one-hot vector, the index divided by the length, and
sinusoids. All candidates except sinusoids fail at least one of the four criteria. Verdicts are
computed from the vectors of short sentences, of the longest sentences in training, and of longer
sentences.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from heedful.errors import SettingError
from heedful.model.embedding import SINUSOIDS, LearnedPositions
from heedful.runs.run import Run
from heedful.translation.translator import Translator

Table = Float[np.ndarray, "positions width"]

CRITERIA = (
    "unique encoding for each position",
    "deterministic",
    "same distance between neighboring positions",
    "generalizes to longer sentences",
)
SHORT = ("unique", "deterministic", "same distance", "longer sentences")
# Sentences of 4 and 10 words, in which the normalized index grows by 0.25 and 0.10 per word.
_NOTED = (4, 10)
_LONGER = 4
_SAME, _APART = 1.001, 1e-6


@dataclass(frozen=True)
class Scheme:
    """A positional encoding."""

    name: str
    """Name of the encoding; sinusoids and learned positions have the names that recipes use."""
    formula: str
    encode: Callable[[int], Table]
    """
    Maps the length of a sentence to the vectors of its positions, shape (length, width); there are
    fewer rows if the last positions have no vectors.
    """
    rows: int = 0
    """Number of vectors; 0 if unlimited."""


class Verdict(NamedTuple):
    """Whether an encoding meets a criterion, and the number that decides this."""

    criterion: str
    holds: bool
    number: float
    """The deciding number."""
    reason: str
    """Meaning of the number."""


class Products(NamedTuple):
    """Properties of the dot products of positions."""

    table: Float[np.ndarray, "positions positions"]
    uneven: float
    """
    Largest difference between products of equally distant positions, relative to the largest
    product; 0 if products depend only on the distance.
    """
    falls_until: int
    """Largest distance up to which the mean product decreases at every step."""
    by_distance: Float[np.ndarray, " positions"]
    """Mean product at each distance, divided by the mean product of a position with itself."""


def schemes(d_model: int) -> list[Scheme]:
    """List the positional encodings, with two layouts of the sinusoids."""
    return [
        Scheme("index", "PE(pos) = pos", _index),
        Scheme("one-hot", f"1 at index pos of {d_model}", lambda n: np.eye(d_model)[:n], d_model),
        Scheme("normalized", "PE(pos) = pos / length", lambda n: _index(n) / n),
        Scheme(
            "interleaved", "the paper: sine and cosine alternate", _sinusoid("interleaved", d_model)
        ),
        Scheme(
            "halves", "the paper's code: all sines, then all cosines", _sinusoid("halves", d_model)
        ),
    ]


def learned_positions(run: Run, weights: str = "default") -> Scheme:
    """Read the learned positions of a run; raises `SettingError` if it has no learned positions."""
    kind = run.config.model.positions
    if kind != "learned":
        raise SettingError(
            f"--run must name a run with model.positions=learned, but {run.folder.path} has "
            f"{kind!r}. Train one with --set model.positions=learned, or leave --run out."
        )
    model = Translator.load(run.folder.path, weights=weights, device="cpu", precision="fp32")
    positions = model.models[0].source_positions
    assert isinstance(positions, LearnedPositions)
    rows = positions.weight.size(0)

    def encode(length: int) -> Table:
        """Return the learned vectors of the first `length` positions."""
        vectors: np.ndarray = positions(0, length).detach().double().numpy()
        return vectors

    return Scheme(
        "learned", f"{rows} rows of a table; later positions share the last row", encode, rows
    )


def check_criteria(scheme: Scheme, length: int) -> list[Verdict]:
    """
    Check the four criteria.

    `length`: number of positions of the longest sentence in training, at least 2.

    An encoding generalizes to a longer sentence if every position has a distinct vector with no
    component larger than in training. The longer sentence has four times `length` positions, or
    four times as many positions as the encoding has vectors, if that number is larger. This
    criterion is necessary, not sufficient: only a trained model shows how well it translates longer
    sentences.
    """
    seen, again = scheme.encode(length), scheme.encode(length)
    return [
        _unique(seen, length),
        _deterministic(seen, again),
        _same_distance(scheme, length),
        _longer(scheme, seen, _LONGER * max(length, scheme.rows)),
    ]


def products(table: Table) -> Products:
    """
    Compute the dot products of all positions.

    For sinusoids, the product at a distance is the sum of cos(rate x distance) over all rates.

    >>> products(np.eye(3)).by_distance.tolist()
    [1.0, 0.0, 0.0]
    """
    dots = table @ table.T
    diagonals = [np.diagonal(dots, offset) for offset in range(len(dots))]
    uneven = max(float(np.ptp(diagonal)) for diagonal in diagonals) / float(np.abs(dots).max())
    means = np.array([diagonal.mean() for diagonal in diagonals])
    rises = np.flatnonzero(np.diff(means) >= 0)
    falls_until = int(rises[0]) if len(rises) else len(means) - 1
    return Products(dots, uneven, falls_until, means / means[0])


def _index(length: int) -> Table:
    """Return the indices of the positions, from 1."""
    return np.arange(1.0, length + 1)[:, None]


def _sinusoid(layout: str, d_model: int) -> Callable[[int], Table]:
    """Return the function that computes the sinusoids of a layout, in double precision."""
    return lambda length: SINUSOIDS[layout](0, length, d_model).double().numpy()


def _distances(table: Table) -> Float[np.ndarray, " steps"]:
    """Compute the distances between the vectors of neighboring positions."""
    distances: np.ndarray = np.linalg.norm(np.diff(table, axis=0), axis=1)
    return distances


def _unique(table: Table, length: int) -> Verdict:
    """Check whether all vectors differ, by the distance between the two closest vectors."""
    if len(table) < length:
        reason = f"positions with an encoding, out of {length}"
        return Verdict(CRITERIA[0], False, len(table), reason)
    squares = (table**2).sum(axis=1)
    apart = squares[:, None] + squares - 2 * table @ table.T
    np.fill_diagonal(apart, np.inf)
    first, second = np.unravel_index(apart.argmin(), apart.shape)
    nearest = float(np.linalg.norm(table[first] - table[second]))
    reason = "distance between the two vectors that are closest to each other"
    return Verdict(CRITERIA[0], nearest > _APART, nearest, reason)


def _deterministic(table: Table, again: Table) -> Verdict:
    """Compare two computations bit by bit."""
    different = int((table != again).sum())
    reason = f"numbers, out of {table.size:,}, that differ when computed again"
    return Verdict(CRITERIA[1], not different, different, reason)


def _same_distance(scheme: Scheme, length: int) -> Verdict:
    """Compare the distances between neighboring positions in short and long sentences."""
    lengths = sorted({*_NOTED, length})
    steps = {count: _distances(scheme.encode(count)) for count in lengths}
    every = np.concatenate(list(steps.values()))
    largest, smallest = float(every.max()), float(every.min())
    ratio = largest / smallest if smallest > 0 else float("inf") if largest > 0 else 1.0
    means = [f"{float(distances.mean()):.3g} ({count})" for count, distances in steps.items()]
    reason = (
        "largest distance divided by the smallest; mean distance, by number of words: "
        f"{', '.join(means)}"
    )
    return Verdict(CRITERIA[2], ratio <= _SAME, ratio, reason)


def _longer(scheme: Scheme, encodings: Table, longer: int) -> Verdict:
    """Check whether a longer sentence has distinct vectors without larger components."""
    table = scheme.encode(longer)
    distinct = len({row.tobytes() for row in table})
    if distinct < longer:
        reason = f"positions with a distinct encoding, out of {longer:,}"
        return Verdict(CRITERIA[3], False, distinct, reason)
    growth = float(np.abs(table).max() / np.abs(encodings).max())
    reason = f"largest number in {longer:,} positions divided by the largest in {len(encodings):,}"
    return Verdict(CRITERIA[3], growth <= _SAME, growth, reason)
