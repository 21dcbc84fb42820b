"""Checks of positional encodings and of claims about scaling, as tables and pictures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heedful.experiments.estimate import Estimate
from heedful.paper.positions import (
    CRITERIA,
    SHORT,
    Products,
    Scheme,
    Verdict,
    check_criteria,
    learned_positions,
    products,
    schemes,
)
from heedful.paper.scaling import SCALES, Point, measure, widths
from heedful.runs.run import Run
from heedful.visualise.positions import PositionTable, position_pictures
from heedful.visualise.report_page import ReportPage
from heedful.visualise.scaling import Curve, CurvePanel, theory_and_measurement

Rows = list[tuple[str, ...]]

_DISTANCES = (1, 2, 4, 8, 16, 32, 64, 128)


class CheckedScheme(NamedTuple):
    """A positional encoding, with its verdicts and dot products."""

    scheme: Scheme
    verdicts: list[Verdict]
    dots: Products


@dataclass(frozen=True)
class CheckedPositions:
    """Positional encodings and their verdicts under the four criteria."""

    length: int
    """Number of positions of the longest sentence in training."""
    encodings: tuple[CheckedScheme, ...]

    @property
    def marks(self) -> Rows:
        """A table that shows which encoding meets which criterion."""
        rows: Rows = [("encoding", *SHORT)]
        for scheme, checks, _ in self.encodings:
            rows.append((scheme.name, *("yes" if check.holds else "no" for check in checks)))
        return rows

    @property
    def reasons(self) -> Rows:
        """A table of the numbers that decided the verdicts, and their meanings."""
        rows: Rows = [("encoding", "criterion", "", "number", "which is")]
        for scheme, checks, _ in self.encodings:
            for short, check in zip(SHORT, checks, strict=True):
                mark = "yes" if check.holds else "no"
                rows.append((scheme.name, short, mark, _number(check.number), check.reason))
        return rows

    @property
    def products(self) -> Rows:
        """A table of properties of the dot products."""
        far = [distance for distance in _DISTANCES if distance < self.length]
        rows: Rows = [
            ("dot products", "uneven", "fall until", *(f"{distance} apart" for distance in far))
        ]
        for scheme, _, dots in self.encodings:
            shares = [
                f"{dots.by_distance[distance]:.3f}" if distance < len(dots.by_distance) else ""
                for distance in far
            ]
            rows.append((scheme.name, f"{dots.uneven:.1g}", str(dots.falls_until), *shares))
        return rows

    @property
    def as_json(self) -> dict[str, Any]:
        """All results as JSON values."""
        return {
            "length": self.length,
            "encodings": {
                scheme.name: {
                    "formula": scheme.formula,
                    "criteria": {
                        check.criterion: {
                            "holds": check.holds,
                            "number": check.number if math.isfinite(check.number) else None,
                            "which_is": check.reason,
                        }
                        for check in checks
                    },
                    "dot_products": {
                        "uneven": dots.uneven,
                        "falls_until": dots.falls_until,
                        "by_distance": dots.by_distance.tolist(),
                    },
                }
                for scheme, checks, dots in self.encodings
            },
        }

    def draw(self, out: Path) -> None:
        """Draw vectors and dot products."""
        tables = [
            PositionTable(
                scheme.name,
                scheme.formula,
                scheme.encode(self.length),
                dots.table,
                dots.by_distance,
            )
            for scheme, _, dots in self.encodings
        ]
        sheet = ReportPage(
            f"{self.length} positions",
            "Top: the vector of each position. Middle: the dot products of all pairs of "
            "positions. Bottom: the mean dot product at each distance, divided by the mean "
            f"product of a position with itself. The criteria: {'; '.join(CRITERIA)}.",
            self.reasons,
        )
        position_pictures(tables, out, sheet)


def check_positions(
    d_model: int, length: int, run: Path | None = None, weights: str = "default"
) -> CheckedPositions:
    """Check all positional encodings; raises `SettingError` if `run` has no learned positions."""
    every = schemes(d_model)
    if run is not None:
        every.append(learned_positions(Run.open(run), weights))
    return CheckedPositions(
        length,
        tuple(
            CheckedScheme(scheme, check_criteria(scheme, length), products(scheme.encode(length)))
            for scheme in every
        ),
    )


@dataclass(frozen=True)
class MeasuredScaling:
    """Measurements of dot products and of the softmax."""

    keys: int
    """Number of keys per query."""
    queries: int
    """Number of queries per width."""
    points: tuple[Point, ...]
    """Measurements in the order of widths, then of scales."""

    @property
    def sheet(self) -> ReportPage:
        """The results as a table with a title and a caption."""
        header = ("scale", "d_k", "variance", "theory", "gradient", "theory", "reaches the query")
        rows = [
            (
                point.scale,
                str(point.d_k),
                _with_margin(point.variance),
                _number(point.variance_theory),
                _with_margin(point.gradient),
                f"{point.gradient_theory:.6g}",
                _with_margin(point.reach),
            )
            for scale in SCALES
            for point in self.points
            if point.scale == scale
        ]
        caption = (
            f"Softmax over {self.keys} keys, {self.queries:,} queries for each d_k. Gradient: sum "
            "of p (1 - p) over the keys, the trace of the softmax’s Jacobian, at most "
            f"{1 - 1 / self.keys:.4g}. Reaches the query: median norm of the derivatives of the "
            "attention weights with respect to the query; there is no theoretical value. Margins "
            "are 95% confidence intervals."
        )
        return ReportPage("Scaling by the square root of d_k", caption, [header, *rows])

    @property
    def as_json(self) -> dict[str, Any]:
        """All results as JSON values."""

        def measured(estimate: Estimate, theory: float | None = None) -> dict[str, float]:
            """Convert one measured number to JSON values."""
            known = {} if theory is None else {"theory": theory}
            return {"value": estimate.value, "margin": estimate.margin, **known}

        return {
            "keys": self.keys,
            "queries": self.queries,
            "points": [
                {
                    "d_k": point.d_k,
                    "scale": point.scale,
                    "variance": measured(point.variance, point.variance_theory),
                    "gradient": measured(point.gradient, point.gradient_theory),
                    "reach": measured(point.reach),
                }
                for point in self.points
            ],
        }

    def draw(self, out: Path) -> None:
        """Plot the variance of the products and two gradients against the width."""
        panels = [
            CurvePanel(title, tuple(_curve(self.points, scale, name) for scale in SCALES))
            for title, name in (
                ("variance of q·k × scale", "variance"),
                ("gradient of the softmax", "gradient"),
                ("gradient at the query (median)", "reach"),
            )
        ]
        every = sorted({point.d_k for point in self.points})
        theory_and_measurement(every, panels, "d_k", out, self.sheet)


def measure_scaling(largest: int, keys: int, queries: int, seed: int) -> MeasuredScaling:
    """Measure dot products and the softmax for all widths."""
    return MeasuredScaling(
        keys,
        queries,
        tuple(point for d_k in widths(largest) for point in measure(d_k, keys, queries, seed)),
    )


def _curve(points: Sequence[Point], scale: str, name: str) -> Curve:
    """Collect the values of one quantity for one scale as a curve."""
    own = [point for point in points if point.scale == scale]
    measured: list[Estimate] = [getattr(point, name) for point in own]
    theory = [getattr(point, f"{name}_theory", math.nan) for point in own]
    return Curve(
        "without scale" if scale == "none" else scale,
        np.array([estimate.value for estimate in measured]),
        np.array([estimate.margin for estimate in measured]),
        None if name == "reach" else np.array(theory),
    )


def _with_margin(estimate: Estimate) -> str:
    """Format a number and its margin so that the margin has at least two significant digits."""
    decimals = max(0, 1 - math.floor(math.log10(estimate.margin))) if estimate.margin > 0 else 6
    return f"{estimate.value:.{decimals}f} ± {estimate.margin:.{decimals}f}"


def _number(value: float) -> str:
    """Format a number with four significant digits, or an integer with all its digits."""
    return f"{value:,.0f}" if math.isfinite(value) and value == int(value) else f"{value:.4g}"
