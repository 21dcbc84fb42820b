"""Reproduction of Table 1: costs of layers by formula, by counting and by measurement."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.experiments.page import Rows, markdown, write_table
from heedful.families.table1 import LayerSizes
from heedful.files import make_folder
from heedful.machine.devices import describe_machine
from heedful.paper.dependent_products import CountedProducts, count_products
from heedful.paper.layer_kinds import KINDS
from heedful.paper.layer_times import (
    FEWEST,
    LENGTHS,
    WIDTHS,
    Axis,
    LayerTimes,
    measure_layers,
)
from heedful.paper.longest_path import find_longest_path
from heedful.runs.lock import only_writer
from heedful.visualise.report_page import ReportPage
from heedful.visualise.size_curves import SizeCurve, SizePanel, draw_size_curves

COUNTED = LayerSizes(n=512, d=512, k=3, r=16)
"""Sizes at which costs are counted."""
PATHS = LayerSizes(n=32, d=4, k=3, r=8)
"""Sizes at which the longest paths are found."""
_AXES: tuple[tuple[Axis, tuple[int, ...]], ...] = (("n", LENGTHS), ("d", WIDTHS))
_COMPARED = ("self-attention", "recurrent")
"""The two layers whose times are compared to find the sizes at which the times cross."""
COUNT_HEADING = (
    f"Costs are multiply-adds of one layer at n = {COUNTED.n}, d = {COUNTED.d}, k = {COUNTED.k} "
    f"and r = {COUNTED.r}. Steps are sequential matrix products: each needs the result of the "
    "previous one. Paths are counted in layers, or in steps for the recurrent layer, at "
    f"n = {PATHS.n}, k = {PATHS.k} and r = {PATHS.r}. The number before the slash is for "
    "bidirectional stacks, and the number after it for causal stacks."
)
"""Text above `Table1.count_rows`: the meaning of its columns, and the sizes."""


@dataclass(frozen=True)
class Table1:
    """Each layer's cost, sequential operations and longest path, with times."""

    products: dict[str, CountedProducts]
    """Matrix products of each layer at the sizes `COUNTED`, by the name of the layer."""
    paths: dict[str, tuple[int | None, int | None]]
    """
    Longest paths at the sizes `PATHS`, found by gradients, of bidirectional and of causal layers.
    """
    times: LayerTimes
    machine: dict[str, Any]

    @property
    def time_heading(self) -> str:
        """Text above `time_rows`."""
        return describe_times(len(self.times.rounds), self.times.threads)

    @property
    def count_rows(self) -> Rows:
        """Published, exact and counted numbers, side by side."""
        rows: Rows = [
            (
                *("layer", "published cost", "as a number", "with projections", "counted"),
                *("published steps", "counted", "published path", "by formula", "found"),
            )
        ]
        for name, kind in KINDS.items():
            counted = self.products[name]
            by_formula = [kind.longest_path(PATHS, causal) for causal in (False, True)]
            rows.append(
                (
                    *(name, kind.cost, f"{kind.printed(COUNTED):.3g}"),
                    *(f"{kind.exact(COUNTED):.3g}", f"{counted.multiply_adds:.3g}"),
                    *(kind.sequential, str(counted.chain), kind.path),
                    "{} / {}".format(*by_formula),
                    "{} / {}".format(*self.paths[name]),
                )
            )
        return rows

    @property
    def time_rows(self) -> Rows:
        """Times at the smallest and the largest size, and the exponents of their growth."""
        middle_n, middle_d = LENGTHS[len(LENGTHS) // 2], WIDTHS[len(WIDTHS) // 2]
        rows: Rows = [
            (
                "layer",
                *(f"ms, n = {n}, d = {middle_d}" for n in (LENGTHS[0], LENGTHS[-1])),
                "power of n",
                *(f"ms, d = {d}, n = {middle_n}" for d in (WIDTHS[0], WIDTHS[-1])),
                "power of d",
            )
        ]
        for name in KINDS:
            cells = []
            for axis, sizes in _AXES:
                for size in (sizes[0], sizes[-1]):
                    estimate = self.times.estimate(name, axis, size)
                    cells.append(f"{1000 * estimate.value:.2f} ± {1000 * estimate.margin:.2f}")
                power = self.times.exponent(name, axis)
                cells.append(f"{power.value:.2f} ± {power.margin:.2f}")
            rows.append((name, *cells))
        return rows

    @property
    def conclusions(self) -> list[str]:
        """The conclusions that the tables allow."""
        return conclude(self._layers(), self._crossings(), len(self.times.rounds))

    def to_markdown(self) -> str:
        """Lay the table out as a page."""
        parts = [
            "# Table 1",
            COUNT_HEADING,
            markdown(self.count_rows),
            self.time_heading,
            markdown(self.time_rows),
            *self.conclusions,
        ]
        return "\n\n".join(parts) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {
            "layers": self._layers(),
            "crossings": self._crossings(),
            "rounds": list(self.times.rounds),
            "threads": self.times.threads,
            "machine": self.machine,
            "conclusions": self.conclusions,
        }

    def _layers(self) -> list[dict[str, Any]]:
        """Convert the costs of each layer to JSON values."""
        return [
            {
                "name": name,
                "published": [kind.cost, kind.sequential, kind.path],
                "printed": kind.printed(COUNTED),
                "exact": kind.exact(COUNTED),
                "counted": self.products[name].multiply_adds,
                "sequential": self.products[name].chain,
                "paths": list(self.paths[name]),
                "powers": {axis: self.times.exponent(name, axis)._asdict() for axis, _ in _AXES},
            }
            for name, kind in KINDS.items()
        ]

    def _crossings(self) -> dict[str, Any]:
        """Convert the crossings of self-attention and recurrence to JSON values."""
        if _COMPARED[1] not in KINDS:
            return {}
        crossings = {axis: self.times.crossings(*_COMPARED, axis) for axis, _ in _AXES}
        return {
            axis: crossing
            and {
                "faster_below": _COMPARED[0 if crossing.first_is_faster else 1],
                "sizes": [size._asdict() for size in crossing.sizes],
                "rounds": crossing.rounds,
            }
            for axis, crossing in crossings.items()
        }

    def draw(self, out: Path) -> None:
        """Plot time against n and against d."""
        panels = []
        for axis, sizes in _AXES:
            curves = []
            for name in KINDS:
                estimates = [self.times.estimate(name, axis, size) for size in sizes]
                times = tuple(1000 * estimate.value for estimate in estimates)
                margins = tuple(1000 * estimate.margin for estimate in estimates)
                curves.append(SizeCurve(name, times, margins))
            panels.append(SizePanel(axis, sizes, tuple(curves), "milliseconds"))
        sheet = ReportPage(
            "Table 1: time of a layer",
            "Time of a forward pass of one sequence, against its length and against the width.",
            self.time_rows,
        )
        draw_size_curves(panels, out, sheet)


def describe_times(rounds: int, threads: int) -> str:
    """Describe the measurement of `Table1.time_rows`."""
    return (
        f"Times are milliseconds for a forward pass of one sequence at k = {LayerSizes.k} and "
        f"r = {LayerSizes.r}, with {threads} thread{'s' * (threads != 1)}, {rounds} rounds and "
        "95% intervals. A power is the exponent of the growth, fitted to the three largest sizes."
    )


def conclude(
    layers: Sequence[Mapping[str, Any]], crossings: Mapping[str, Any], rounds: int
) -> list[str]:
    """
    State the conclusions that a table allows.

    `layers`, `crossings`: the values of `Table1.to_dict`. `rounds`: the number of rounds.
    """
    by_name = {layer["name"]: layer for layer in layers}
    attention, restricted = by_name["self-attention"], by_name["restricted self-attention"]
    return [
        *(_compare_with_recurrence(crossings, rounds) if crossings else []),
        f"Self-attention has {attention['sequential']} counted steps (projections, scores, mixing, "
        f"output), and {attention['published'][1]} published step. Restricted self-attention is "
        f"computed in blocks, which need more multiply-adds ({restricted['counted']:.3g}) than its "
        f"formula gives ({restricted['exact']:.3g}).",
    ]


def _compare_with_recurrence(crossings: Mapping[str, Any], rounds: int) -> list[str]:
    """Compare self-attention with a recurrent layer."""
    n, d = LENGTHS[len(LENGTHS) // 2], WIDTHS[len(WIDTHS) // 2]
    more = 2  # 8 d² of an LSTM = 4 d² (projections) + 2 n d (pairs) of attention at n = 2 d
    by_length, by_width = (_faster(axis, crossings[axis], rounds) for axis, _ in _AXES)
    return [
        "By the published costs, a self-attention layer is cheaper than a recurrent layer if n "
        "is below d. If the projections and an LSTM's four gates are counted too, self-attention "
        f"needs fewer multiply-adds than the LSTM if n is below {more} d. At d = {d} these limits "
        f"are n = {d} and n = {more * d}; in the measurement, {by_length}. At n = {n} the limits "
        f"are d = {n} and d = {n // more}; in the measurement, {by_width}.",
        "A recurrent layer's products are sequential, so it takes longer than its multiply-adds "
        "alone would take. The powers hold for this machine's kernels and for one sequence at a "
        "time. They differ from the published orders of growth, because the time for projections "
        "and for reading the weights grows with other powers.",
    ]


def _faster(axis: Axis, crossing: Mapping[str, Any] | None, rounds: int) -> str:
    """State at which sizes self-attention is faster than recurrence."""
    sizes = LENGTHS if axis == "n" else WIDTHS
    if crossing is None:
        return "no two rounds agree on where the times cross"
    first = "recurrence" if crossing["faster_below"] == _COMPARED[1] else _COMPARED[0]
    agreeing = f" in {crossing['rounds']} of {rounds} rounds"
    agreeing = "" if crossing["rounds"] == rounds else agreeing
    if not crossing["sizes"]:
        return f"{first} is faster at every {axis} from {sizes[0]:,} to {sizes[-1]:,}{agreeing}"
    where = " and ".join(
        f"{axis} = {size['value']:,.0f} ± {size['margin']:,.0f}" for size in crossing["sizes"]
    )
    below = "this size" if len(crossing["sizes"]) == 1 else "the first of these sizes"
    return f"the times cross at {where}{agreeing}, and {first} is faster below {below}"


def make_table1(
    out: Path,
    budget: float,
    *,
    threads: int = 0,
    say: Callable[[str], object] = lambda _: None,
) -> Table1:
    """
    Count matrix products, find paths and time all layers, or continue from `out`.

    `budget`: the time budget in seconds.

    Raises `RunFolderError` if another process writes into `out`, or if `out` has results of other
    settings.
    """
    make_folder(out)
    with only_writer(out, "paper table1"):
        began = time.monotonic()
        products = {name: count_products(name, COUNTED) for name in KINDS}
        paths = {
            name: (find_longest_path(name, PATHS, False), find_longest_path(name, PATHS, True))
            for name in KINDS
        }
        say("costs were counted and paths were found")
        times = measure_layers(out / "times.json", budget, threads, say)
        table = Table1(products, paths, times, describe_machine())
        write_table(out, "table1", table.to_markdown(), table.to_dict())
        table.draw(out / "table1.png")
        if (took := time.monotonic() - began) > budget:
            why = f", because at least {FEWEST} rounds are needed" * (len(times.rounds) == FEWEST)
            say(f"This took {took:.1f} s, more than the budget of {budget:g} s{why}.")
        return table
