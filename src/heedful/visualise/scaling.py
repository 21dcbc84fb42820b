"""
Log-log plots against d_k: theory as lines, measurements as points.

The panels are side by side, with one color and one marker for each scaling of the dot products.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from heedful.visualise.figure_files import INK, draw_grid, drawing, printable
from heedful.visualise.report_page import ReportPage, check_report_ending, save_report_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLORS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#4d4d4d")
_MARKERS = ("s", "o", "^", "D", "v")

# Lengths in inches, font sizes in points.
_SIDE, _TALL, _LETTERS, _DPI = 2.35, 2.2, 8.0, 200
_LEFT, _GAP, _TOP, _BOTTOM = 0.45, 0.55, 0.55, 0.45


@dataclass(frozen=True)
class Curve:
    """The data of one curve in one panel."""

    name: str
    """Name in the legend."""
    value: Float[np.ndarray, " widths"]
    margin: Float[np.ndarray, " widths"]
    """Half the width of the confidence interval of each measured value."""
    theory: Float[np.ndarray, " widths"] | None = None
    """Theoretical values."""


@dataclass(frozen=True)
class CurvePanel:
    """One panel of curves."""

    title: str
    """Name of the measured quantity."""
    curves: tuple[Curve, ...]
    """The curves in the order of the legend."""


def theory_and_measurement(
    widths: Sequence[int], panels: Sequence[CurvePanel], x_label: str, out: Path, sheet: ReportPage
) -> None:
    """
    Draw measurements and theory together.

    An error bar smaller than its point is hidden by the point.

    Raises `SettingError` if `check_report_ending` refuses `out`, and `StorageError` if the file
    cannot be written.
    """
    check_report_ending(out)
    with drawing(_LETTERS):
        save_report_page(_draw(widths, panels, x_label), out, sheet)


def _draw(widths: Sequence[int], panels: Sequence[CurvePanel], x_label: str) -> "Figure":
    """Draw the panels side by side, with the legend above them."""
    from matplotlib.figure import Figure

    width = _LEFT + len(panels) * (_SIDE + _GAP)
    height = _TOP + _TALL + _BOTTOM
    figure = Figure(figsize=(width, height), dpi=_DPI, facecolor="white")
    for column, panel in enumerate(panels):
        left = _LEFT + column * (_SIDE + _GAP)
        box = (left / width, _BOTTOM / height, _SIDE / width, _TALL / height)
        axes = figure.add_axes(box)
        _draw_panel(axes, widths, panel)
        axes.set_xlabel(x_label, color=INK, labelpad=2)
    handles, names = axes.get_legend_handles_labels()
    if any(curve.theory is not None for panel in panels for curve in panel.curves):
        note = "lines: theory, points: measured"
        figure.text(1 - _GAP / width, 1.0, note, color=INK, ha="right", va="top")
    figure.legend(
        handles,
        names,
        loc="upper left",
        bbox_to_anchor=(_LEFT / width, 1.0),
        ncols=len(names),
        frameon=False,
        borderaxespad=0,
        labelcolor=INK,
        handlelength=2.2,
        borderpad=0,
    )
    return figure


def _draw_panel(axes: "Axes", widths: Sequence[int], panel: CurvePanel) -> None:
    """Draw lines and points."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_title(printable(panel.title), loc="left", color=INK, fontsize=9, pad=6)
    draw_grid(axes)
    axes.tick_params(which="both", length=2, width=0.5, pad=3, labelsize=7, labelcolor=INK)
    for index, curve in enumerate(panel.curves):
        color = _COLORS[index % len(_COLORS)]
        if curve.theory is not None:
            axes.plot(widths, curve.theory, color=color, linewidth=1.1, alpha=0.75)
        axes.errorbar(
            widths,
            curve.value,
            yerr=np.minimum(curve.margin, 0.99 * curve.value),
            fmt=_MARKERS[index % len(_MARKERS)],
            color=color,
            markersize=3.6,
            markeredgewidth=0,
            elinewidth=0.9,
            capsize=1.8,
            capthick=0.9,
            label=printable(curve.name),
        )
    axes.set_xticks([width for width in widths if width & (width - 1) == 0][::2])
    axes.xaxis.set_minor_locator(NullLocator())
    low, high = axes.get_ylim()
    if high < 100 * low:  # the range spans less than two powers of ten, so it needs more ticks
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
