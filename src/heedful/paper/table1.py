"""Reproduction of Table 1: the costs of layers by formula, counted and measured."""

import time
from collections.abc import Callable
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
"""The two layers that are compared for crossings."""


@dataclass(frozen=True)
class Table1:
    """Each layer's cost, sequential steps and longest path, with times."""

    products: dict[str, CountedProducts]
    """Matrix products of each layer at the sizes `COUNTED`, by the name of the layer."""
    paths: dict[str, tuple[int | None, int | None]]
    """
    Longest paths at the sizes `PATHS`, found by gradients, of layers that read both sides and of
    causal layers.
    """
    times: LayerTimes
    machine: dict[str, Any]

    @property
    def count_heading(self) -> str:
        """A note on the columns of `count_rows` and their sizes."""
        sizes = f"n = {COUNTED.n}, d = {COUNTED.d}, k = {COUNTED.k}, r = {COUNTED.r}"
        return (
            f"Multiply-adds of a layer at {sizes}; sequential steps are products that wait for "
            "each other:"
        )

    @property
    def time_heading(self) -> str:
        """A note on the columns of `time_rows` and the measurement."""
        threads = f"{self.times.threads} thread" + "s" * (self.times.threads != 1)
        return (
            f"Times of one sequence with k = {LayerSizes.k}, r = {LayerSizes.r} and {threads}, "
            f"{len(self.times.rounds)} rounds, 95 % intervals:"
        )

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
        """Notes on the conclusions that the tables allow."""
        attention = self.products["self-attention"]
        restricted = self.products["restricted self-attention"]
        return [
            *(self._beside_recurrence() if _COMPARED[1] in KINDS else []),
            "Counted steps are products that each need the result of the previous product: "
            f"{attention.chain} of self-attention (projections, scores, mixing, output) compared "
            f"with a published {KINDS['self-attention'].sequential}. Restricted self-attention is "
            f"computed in blocks, which multiply more ({restricted.multiply_adds:.3g}) than the "
            f"band of the formula ({KINDS['restricted self-attention'].exact(COUNTED):.3g}).",
            f"Paths were found in stacks with n = {PATHS.n}, k = {PATHS.k} and r = {PATHS.r}, "
            "where layers read both sides / only earlier positions.",
        ]

    def _beside_recurrence(self) -> list[str]:
        """Compare self-attention with a recurrent layer."""
        n, d = LENGTHS[len(LENGTHS) // 2], WIDTHS[len(WIDTHS) // 2]
        more = 2  # 8 d² of an LSTM = 4 d² (projections) + 2 n d (pairs) of attention at n = 2 d
        return [
            "By the published costs a self-attention layer is cheaper than a recurrent one while n "
            "is below d. With the projections, and an LSTM's four gates, it multiplies less while "
            f"n is below 2 d. At d = {d} these limits are n = {d} and n = {more * d}; measured: "
            f"{self._faster('n')}. At n = {n} the limits are d = {n} and d = {n // more}; "
            f"measured: {self._faster('d')}.",
            "A recurrent layer's products wait for each other, so it takes longer than its "
            "multiply-adds alone would. The powers are fitted to the three largest sizes, "
            "for this machine's kernels and one sequence at a time. They differ from the "
            "published orders, because projections and the reading of weights grow with "
            "other powers.",
        ]

    def _faster(self, axis: Axis) -> str:
        """State at which sizes self-attention is faster than recurrence."""
        sizes = LENGTHS if axis == "n" else WIDTHS
        crossing, rounds = self.times.crossings(*_COMPARED, axis), len(self.times.rounds)
        if crossing is None:
            return "no two rounds agree on where their times cross"
        first = "self-attention" if crossing.first_is_faster else "recurrence"
        agreeing = "" if crossing.rounds == rounds else f" in {crossing.rounds} of {rounds} rounds"
        if not crossing.sizes:
            return f"{first} is faster at every {axis} from {sizes[0]:,} to {sizes[-1]:,}{agreeing}"
        where = " and ".join(
            f"{axis} = {size.value:,.0f} ± {size.margin:,.0f}" for size in crossing.sizes
        )
        return f"their times cross at {where}{agreeing}, and {first} is faster below the first size"

    def to_markdown(self) -> str:
        """Lay the table out as a page."""
        parts = [
            "# Table 1",
            self.count_heading,
            markdown(self.count_rows),
            self.time_heading,
            markdown(self.time_rows),
            *self.conclusions,
        ]
        return "\n\n".join(parts) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values."""
        return {
            "layers": [
                {
                    "name": name,
                    "published": [kind.cost, kind.sequential, kind.path],
                    "printed": kind.printed(COUNTED),
                    "exact": kind.exact(COUNTED),
                    "counted": self.products[name].multiply_adds,
                    "sequential": self.products[name].chain,
                    "paths": list(self.paths[name]),
                    "powers": {
                        axis: self.times.exponent(name, axis)._asdict() for axis in ("n", "d")
                    },
                }
                for name, kind in KINDS.items()
            ],
            "crossings": {
                axis: self._crossings(axis) for axis, _ in _AXES if _COMPARED[1] in KINDS
            },
            "rounds": list(self.times.rounds),
            "threads": self.times.threads,
            "machine": self.machine,
            "conclusions": self.conclusions,
        }

    def _crossings(self, axis: Axis) -> dict[str, Any] | None:
        """Convert the crossings of self-attention and recurrence to plain values."""
        crossing = self.times.crossings(*_COMPARED, axis)
        if crossing is None:
            return None
        return {
            "faster_below": _COMPARED[0 if crossing.first_is_faster else 1],
            "sizes": [size._asdict() for size in crossing.sizes],
            "rounds": crossing.rounds,
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
            "Forward pass of one sequence, against its length and against the width.",
            self.time_rows,
        )
        draw_size_curves(panels, out, sheet)


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
