"""Plot of quality against cost: one curve per system, with a logarithmic cost axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from heedful.visualise.curves import system_style
from heedful.visualise.figure_files import INK, draw_grid, drawing, printable
from heedful.visualise.report_page import ReportPage, check_report_ending, save_report_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDE, _TALL, _LETTERS, _DPI = 7.4, 4.2, 8.0, 200  # inches, points
_BAND = 0.25  # opacity


@dataclass(frozen=True)
class CostCurve:
    """The curve of one system; a single point if only its final cost is known."""

    name: str
    costs: tuple[float, ...]
    values: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    """The range of the values over seeds; empty if there is only one seed."""

    @classmethod
    def mean(
        cls, name: str, costs: Sequence[Sequence[float]], values: Sequence[Sequence[float]]
    ) -> "CostCurve":
        """Average the curves of several seeds at the points that all of them have."""
        points = [*zip(*values, strict=False)]
        band = (tuple(map(min, points)), tuple(map(max, points))) if len(values) > 1 else ()
        return cls(
            name,
            tuple(fmean(point) for point in zip(*costs, strict=False)),
            tuple(map(fmean, points)),
            *band,
        )


def draw_cost_curves(
    curves: Sequence[CostCurve], x_label: str, y_label: str, out: Path, sheet: ReportPage
) -> None:
    """
    Draw all systems into one panel.

    Raises `SettingError` if `check_report_ending` refuses `out`, and `StorageError` if the file
    cannot be written.
    """
    check_report_ending(out)
    with drawing(_LETTERS):
        save_report_page(_draw(curves, x_label, y_label), out, sheet)


def _draw(curves: Sequence[CostCurve], x_label: str, y_label: str) -> "Figure":
    """Draw the curves, and next to them a legend that lists systems from best to worst."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    figure = Figure(figsize=(_WIDE, _TALL), dpi=_DPI, facecolor="white")
    axes = figure.add_axes((0.08, 0.11, 0.6, 0.86))
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda cost, _: f"{cost:.0e}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    draw_grid(axes)
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel(y_label, color=INK)
    lines = []
    for index, curve in enumerate(curves):
        (line,) = axes.plot(curve.costs, curve.values, markersize=4, **system_style(index))
        if curve.low:
            band = (curve.costs, curve.low, curve.high)
            axes.fill_between(*band, color=line.get_color(), alpha=_BAND, linewidth=0)
        lines.append((curve.values[-1], printable(curve.name), line))
    lines.sort(key=lambda entry: -entry[0])
    figure.legend(
        [line for _, _, line in lines],
        [f"{name}, {value:.1f}" for value, name, _ in lines],
        loc="upper left",
        bbox_to_anchor=(0.7, 0.97),
        frameon=False,
        borderaxespad=0,
        labelcolor=INK,
    )
    return figure
