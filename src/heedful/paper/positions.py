"""
Ways to write down a position, and the four criteria of the founding notes.

The notes go from the number of a position to one place in a vector, to the share of the sentence,
to sinusoids, and cross out each but the last for one of four criteria. Here every mark is
computed: from the vectors of a sentence as long as those in training, of short sentences, and of
one longer than anything seen.
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
    "distance between neighbouring positions the same",
    "generalises to longer sentences",
)
SHORT = ("unique", "deterministic", "same distance", "longer sentences")
# The sentences of the notes, in which the normalised index goes 0.25 and 0.10 a word.
_NOTED = (4, 10)
_LONGER = 4
_SAME, _APART = 1.001, 1e-6


@dataclass(frozen=True)
class Scheme:
    """
    Hold one way to write down a position.

    Attributes
    ----------
    name : str
        As the notes and recipes call it.
    formula : str
        What it is.
    encode : callable
        From the length of a sentence to its positions' vectors, shape (length, width); fewer rows
        where it has no vector for the last ones.
    rows : int, default 0
        How many vectors it has; 0 if they never end.

    Notes
    -----
    The vectors may depend on the length, as those of the normalised index do.
    """

    name: str
    formula: str
    encode: Callable[[int], Table]
    rows: int = 0


class Verdict(NamedTuple):
    """
    Hold whether a scheme meets a criterion, and what decided.

    Attributes
    ----------
    criterion : str
        One of `CRITERIA`.
    holds : bool
        Whether it does.
    number : float
        What decided.
    reason : str
        What the number is.

    Notes
    -----
    Made by `check_criteria`.
    """

    criterion: str
    holds: bool
    number: float
    reason: str


class Products(NamedTuple):
    """
    Hold what the dot products of positions are like.

    Attributes
    ----------
    table : ndarray of float, shape (positions, positions)
        All of them.
    uneven : float
        By how much products of equally distant positions differ, at most, as a share of the
        largest product; 0 where only the distance counts.
    falls_until : int
        Up to this distance the mean product falls with every step.
    by_distance : ndarray of float, shape (positions,)
        Mean product of positions so far apart, as a share of that of a position with itself.

    Notes
    -----
    “Symmetrical, decay nicely with time”, say the notes of the sinusoids'.
    """

    table: Float[np.ndarray, "positions positions"]
    uneven: float
    falls_until: int
    by_distance: Float[np.ndarray, " positions"]


def schemes(d_model: int) -> list[Scheme]:
    """
    List the schemes of the notes, and the layouts of the sinusoids.

    Parameters
    ----------
    d_model : int
        Width of the vectors, even.

    Returns
    -------
    list of Scheme
        Index, one-hot, normalised index, sinusoids as the paper's text has them and as its
        authors' code.

    Notes
    -----
    The sinusoids are those that models are built with (`heedful.model.embedding`).
    """
    return [
        Scheme("index", "PE(pos) = pos", _index),
        Scheme("one-hot", f"1 in place pos of {d_model}", lambda n: np.eye(d_model)[:n], d_model),
        Scheme("normalised", "PE(pos) = pos / length", lambda n: _index(n) / n),
        Scheme("interleaved", "the paper: sin and cos in turn", _sinusoid("interleaved", d_model)),
        Scheme("halves", "its code: all sines, all cosines", _sinusoid("halves", d_model)),
    ]


def learned(run: Run, weights: str = "default") -> Scheme:
    """
    Read the positions that a run has learned.

    Parameters
    ----------
    run : Run
        With `model.positions` set to learned.
    weights : str, default 'default'
        Which of its weights.

    Returns
    -------
    Scheme
        The encoder's.

    Notes
    -----
    Raises `SettingError` if the run's positions are not learned.
    """
    kind = run.config.model.positions
    if kind != "learned":
        raise SettingError(
            f"--run must name a run with model.positions=learned, but {run.folder.path} has "
            f"{kind!r}: those are computed, not learned. Train one with --set "
            "model.positions=learned, or leave --run out."
        )
    model = Translator.load(run.folder.path, weights=weights, device="cpu", precision="fp32")
    positions = model.models[0].source_positions
    assert isinstance(positions, LearnedPositions)
    rows = positions.weight.size(0)

    def encode(length: int) -> Table:
        """Return the rows that the model would read."""
        found: np.ndarray = positions(0, length).detach().double().numpy()
        return found

    return Scheme("learned", f"{rows} rows of a table; others share the last", encode, rows)


def check_criteria(scheme: Scheme, length: int) -> list[Verdict]:
    """
    Check the four criteria.

    Parameters
    ----------
    scheme : Scheme
        What is checked.
    length : int
        Positions of the longest sentence in training, at least 2.

    Returns
    -------
    list of Verdict
        In the order of `CRITERIA`.

    Notes
    -----
    An encoding generalises to a longer sentence here if every position has a vector of its own and
    no number in it is larger than those seen in training. The longer sentence is four times as
    long as the longest in training, or as the scheme has vectors. That is necessary and not
    sufficient: how well a model translates longer sentences is for a model to show.
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

    Parameters
    ----------
    table : ndarray of float, shape (positions, width)
        Their vectors.

    Returns
    -------
    Products
        The table and what it is like.

    Notes
    -----
    Of the sinusoids, by theory, the sum over all rates of the cosine of rate times distance.

    Examples
    --------
    >>> products(np.eye(3)).by_distance.tolist()
    [1.0, 0.0, 0.0]
    """
    found = table @ table.T
    diagonals = [np.diagonal(found, offset) for offset in range(len(found))]
    uneven = max(float(np.ptp(diagonal)) for diagonal in diagonals) / float(np.abs(found).max())
    means = np.array([diagonal.mean() for diagonal in diagonals])
    rises = np.flatnonzero(np.diff(means) >= 0)
    falls_until = int(rises[0]) if len(rises) else len(means) - 1
    return Products(found, uneven, falls_until, means / means[0])


def _index(length: int) -> Table:
    """Count the positions from 1, as the notes do."""
    return np.arange(1.0, length + 1)[:, None]


def _sinusoid(layout: str, d_model: int) -> Callable[[int], Table]:
    """Return the sinusoids of a layout, in double precision from here on."""
    return lambda length: SINUSOIDS[layout](0, length, d_model).double().numpy()


def _distances(table: Table) -> Float[np.ndarray, " steps"]:
    """Return how far each position is from the next one."""
    found: np.ndarray = np.linalg.norm(np.diff(table, axis=0), axis=1)
    return found


def _unique(seen: Table, length: int) -> Verdict:
    """Find the two positions that are closest to each other."""
    if len(seen) < length:
        reason = f"positions that have an encoding, of {length}"
        return Verdict(CRITERIA[0], False, len(seen), reason)
    squares = (seen**2).sum(axis=1)
    apart = squares[:, None] + squares - 2 * seen @ seen.T
    np.fill_diagonal(apart, np.inf)
    one, other = np.unravel_index(apart.argmin(), apart.shape)
    nearest = float(np.linalg.norm(seen[one] - seen[other]))
    reason = "distance of the two positions that are closest to each other"
    return Verdict(CRITERIA[0], nearest > _APART, nearest, reason)


def _deterministic(seen: Table, again: Table) -> Verdict:
    """Compare two computations, bit by bit."""
    different = int((seen != again).sum())
    reason = f"numbers of {seen.size:,} that differ when computed again"
    return Verdict(CRITERIA[1], not different, different, reason)


def _same_distance(scheme: Scheme, length: int) -> Verdict:
    """Compare the distances of neighbours in short and in long sentences."""
    lengths = sorted({*_NOTED, length})
    steps = {count: _distances(scheme.encode(count)) for count in lengths}
    every = np.concatenate(list(steps.values()))
    largest, smallest = float(every.max()), float(every.min())
    ratio = largest / smallest if smallest > 0 else float("inf") if largest > 0 else 1.0
    means = [f"{float(found.mean()):.3g} in {count}" for count, found in steps.items()]
    reason = f"largest distance over smallest; a step is {', '.join(means)} words"
    return Verdict(CRITERIA[2], ratio <= _SAME, ratio, reason)


def _longer(scheme: Scheme, seen: Table, longer: int) -> Verdict:
    """See whether a longer sentence has vectors, all different, with numbers as large as before."""
    table = scheme.encode(longer)
    distinct = len({row.tobytes() for row in table})
    if distinct < longer:
        reason = f"positions that have an encoding of their own, of {longer:,}"
        return Verdict(CRITERIA[3], False, distinct, reason)
    growth = float(np.abs(table).max() / np.abs(seen).max())
    reason = f"largest number in {longer:,} positions over the largest in {len(seen):,}"
    return Verdict(CRITERIA[3], growth <= _SAME, growth, reason)
