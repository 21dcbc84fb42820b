"""
Times of the layers of Table 1, by the number of positions and by the width.

Each round times every layer at every size in turn, so a slow period of the machine affects all of
them. Every round is saved when it ends, and an interrupted measurement continues with the next
round.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float

from heedful.errors import RunFolderError
from heedful.experiments.estimate import Estimate, is_positive
from heedful.experiments.process import torch_threads
from heedful.experiments.record import read_json, write_json
from heedful.families.table1 import LayerSizes
from heedful.paper.layer_build import build_layer
from heedful.paper.layer_kinds import KINDS

Axis = Literal["n", "d"]

LENGTHS = (128, 256, 512, 1024, 2048)
WIDTHS = (64, 128, 256, 512, 1024)
"""Widths to time at the middle length; all of `LENGTHS` are timed at the middle width."""
FITTED = 3
"""Exponents are fitted to this many of the largest sizes; overhead dominates smaller sizes."""
FEWEST = 3
"""Minimum number of rounds, whatever the budget, because fewer rounds give no useful interval."""
_MOST = 30
_TIMING_SHARE = 0.8


class Crossings(NamedTuple):
    """Sizes along an axis at which the faster of two layers changes."""

    first_is_faster: bool
    """Whether the first layer is faster than the second at the smallest size."""
    sizes: tuple[Estimate, ...]
    """The crossings in ascending order; empty if the same layer is faster at all sizes."""
    rounds: int
    """Number of rounds that agree on `first_is_faster` and on the number of crossings."""


@dataclass(frozen=True)
class LayerTimes:
    """Seconds of the forward pass of each layer, one sequence at a time."""

    rounds: tuple[dict[str, float], ...]
    """The seconds of every point in each round, by the key of the point."""
    threads: int

    def estimate(self, name: str, axis: Axis, size: int) -> Estimate:
        """Return the mean time of a point with its margin."""
        return Estimate.of([seconds[_key(name, axis, size)] for seconds in self.rounds])

    def exponent(self, name: str, axis: Axis) -> Estimate:
        """Estimate the exponent of the growth of time with size, from one slope per round."""
        sizes = np.log2(_sizes(axis)[-FITTED:])
        slopes = [
            float(np.polyfit(sizes, np.log2(self._seconds(seconds, name, axis)[-FITTED:]), 1)[0])
            for seconds in self.rounds
        ]
        return Estimate.of(slopes)

    def crossings(self, first: str, second: str, axis: Axis) -> Crossings | None:
        """
        Find the sizes, between measured sizes, at which the faster layer changes.

        Each round has its own crossings. They are averaged over the largest group of rounds that
        agree. Returns None if no two rounds agree.
        """
        results = []
        for seconds in self.rounds:
            ratios = self._seconds(seconds, first, axis) / self._seconds(seconds, second, axis)
            results.append((bool(ratios[0] < 1), _crossings(ratios, _sizes(axis))))
        kinds = Counter((is_faster, len(sizes)) for is_faster, sizes in results)
        (is_faster, count), agreeing = kinds.most_common(1)[0]
        if agreeing == 1:
            return None
        alike = [sizes for faster, sizes in results if (faster, len(sizes)) == (is_faster, count)]
        return Crossings(is_faster, tuple(map(Estimate.of, zip(*alike, strict=True))), agreeing)

    @staticmethod
    def _seconds(seconds: Mapping[str, float], name: str, axis: Axis) -> np.ndarray:
        return np.array([seconds[_key(name, axis, size)] for size in _sizes(axis)])


def measure_layers(
    file: Path, budget: float, threads: int, say: Callable[[str], object] = lambda _: None
) -> LayerTimes:
    """
    Time all layers in rounds, or continue after the rounds in a file.

    `file`: the file in which rounds are saved. `budget`: the time budget in seconds; the first
    round decides how many rounds fit. `threads`: number of threads; 0 for torch's default.

    Raises `RunFolderError` if the file has other content, or rounds of another budget or number of
    threads.
    """
    with torch_threads(threads) as used:
        state = _read(file, budget, used)
        while state["planned"] is None or len(state["rounds"]) < state["planned"]:
            began = time.perf_counter()
            state["rounds"].append(_round())
            if state["planned"] is None:
                fitting = _TIMING_SHARE * budget / (time.perf_counter() - began)
                state["planned"] = min(max(int(fitting), FEWEST), _MOST)
            say(f"round {len(state['rounds'])} of {state['planned']}")
            write_json(file, state)
    return LayerTimes(tuple(state["rounds"]), used)


def points() -> list[tuple[str, Axis, int, LayerSizes]]:
    """List the points to time: name, axis, size along the axis, and all sizes."""
    middle_n, middle_d = LENGTHS[len(LENGTHS) // 2], WIDTHS[len(WIDTHS) // 2]
    entries: list[tuple[str, Axis, int, LayerSizes]] = []
    for name in KINDS:
        entries += [(name, "n", n, LayerSizes(n, middle_d)) for n in LENGTHS]
        entries += [(name, "d", d, LayerSizes(middle_n, d)) for d in WIDTHS]
    return entries


def _round() -> dict[str, float]:
    """Time every point once, after one pass that is not timed."""
    seconds = {}
    for name, axis, size, sizes in points():
        layer = build_layer(name, sizes).eval()
        x = torch.randn(1, sizes.n, sizes.d)
        with torch.inference_mode():
            layer(x)
            began = time.perf_counter()
            layer(x)
            seconds[_key(name, axis, size)] = time.perf_counter() - began
    return seconds


def _read(file: Path, budget: float, threads: int) -> dict[str, Any]:
    """Read the rounds of a file; there are no rounds if there is no file."""
    if not file.exists():
        return {"budget": budget, "threads": threads, "planned": None, "rounds": []}
    state = read_json(file, "hold the times of layers", _check_state)
    keys = {_key(name, axis, size) for name, axis, size, _ in points()}
    is_same = (state["budget"], state["threads"]) == (budget, threads)
    is_complete = all(keys == {*seconds} for seconds in state["rounds"])
    if not (is_complete and is_same):
        raise RunFolderError(
            f"--out must be a new folder or one that the same command began, but {file} has "
            "another budget, number of threads or set of layers; name another folder, or "
            "delete the file."
        )
    return state


def _check_state(state: dict[str, Any]) -> dict[str, Any]:
    """Check the content of a file of rounds, and return it; raises `ValueError` if it is wrong."""
    planned, rounds = state["planned"], state["rounds"]
    if type(planned) is not int or not FEWEST <= planned <= _MOST:
        raise ValueError(f"{planned!r} rounds are planned")
    if type(rounds) is not list or len(rounds) > planned:
        raise ValueError(f"its rounds are not a list of at most {planned} entries")
    for seconds in rounds:
        if wrong := [point for point, value in seconds.items() if not is_positive(value)]:
            raise ValueError(f"the time of {wrong[0]} is {seconds[wrong[0]]!r}")
    return state


def _crossings(ratios: Float[np.ndarray, " size"], measured: Sequence[int]) -> list[float]:
    """Find the sizes at which a ratio crosses 1, by linear interpolation between logarithms."""
    logs, sizes = np.log(ratios), np.log(measured)
    return [
        float(np.exp(sizes[i] - logs[i] * (sizes[i + 1] - sizes[i]) / (logs[i + 1] - logs[i])))
        for i in range(len(sizes) - 1)
        if (logs[i] < 0) != (logs[i + 1] < 0)
    ]


def _sizes(axis: Axis) -> Sequence[int]:
    return LENGTHS if axis == "n" else WIDTHS


def _key(name: str, axis: Axis, size: int) -> str:
    return f"{name}, {axis}={size}"
