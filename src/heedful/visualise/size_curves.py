"""Plots of numbers against a size, with logarithmic or linear axes, in panels side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from heedful.visualise.curves import system_style
from heedful.visualise.figure_files import INK, draw_grid, drawing, printable
from heedful.visualise.report_page import ReportPage, check_report_ending, save_report_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Steps = Literal["both", "x", "y", "none"]
"""Which axes are logarithmic."""
_SIDE, _LEGEND, _LETTERS, _DPI = 3.3, 1.9, 8.0, 200  # inches, points


@dataclass(frozen=True)
class SizeCurve:
    """A curve over the sizes, with its name in the legend."""

    name: str
    values: tuple[float, ...]
    margins: tuple[float, ...] = ()
    """Half the width of the confidence interval of each value; empty if there are no intervals."""
    repeats: tuple[tuple[float, ...], ...] = ()
    """The measurements from which each value and margin are computed, if they are saved."""


@dataclass(frozen=True)
class SizePanel:
    """A panel of curves over the same sizes."""

    axis: str
    sizes: tuple[int, ...]
    curves: tuple[SizeCurve, ...]
    label: str
    """Name of the values."""
    logarithmic: Steps = "both"
    allowed: float = 0.0
    """Largest value that counts as 0; if set, the axis begins at 0 and a line marks this value."""


def draw_size_curves(panels: Sequence[SizePanel], out: Path, sheet: ReportPage) -> None:
    """
    Draw panels side by side, with the legend on the right.

    Raises `SettingError` if `check_report_ending` refuses `out`, and `StorageError` if the file
    cannot be written.
    """
    check_report_ending(out)
    with drawing(_LETTERS):
        save_report_page(_draw(panels), out, sheet)


def _draw(panels: Sequence[SizePanel]) -> "Figure":
    """Draw every panel."""
    from matplotlib.figure import Figure

    width = _SIDE * len(panels) + _LEGEND
    figure = Figure(figsize=(width, _SIDE), dpi=_DPI, facecolor="white")
    every = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, panel in zip(every, panels, strict=True):
        _draw_panel(axes, panel)
    right = 1 - _LEGEND / width
    figure.subplots_adjust(left=0.07, right=right, bottom=0.14, top=0.96, wspace=0.25)
    handles, names = every[0].get_legend_handles_labels()
    figure.legend(
        handles,
        names,
        loc="upper left",
        bbox_to_anchor=(right + 0.01, 0.96),
        frameon=False,
        borderaxespad=0,
        labelcolor=INK,
    )
    return figure


def _scale_y(axes: "Axes", values: Sequence[float]) -> None:
    """
    Make the y axis logarithmic.

    If some values are 0, the axis is linear near 0, or everywhere if the positive values lie within
    one power of ten. If no value is 0 and the values lie within one power of ten, minor ticks have
    numbers.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    positive = [value for value in values if value > 0]
    is_narrow = bool(positive) and max(positive) < 10 * min(positive)
    if positive and min(values) == 0:
        if not is_narrow:
            axes.set_yscale("symlog", linthresh=min(positive))
        return
    axes.set_yscale("log")
    axes.yaxis.set_minor_locator(LogLocator(subs=(2, 3, 5) if is_narrow else "auto"))
    number = FuncFormatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(number if is_narrow else NullFormatter())


def _draw_allowed(axes: "Axes", allowed: float) -> None:
    """Let the axis begin at 0, and show the largest value that counts as 0."""
    axes.set_ylim(-0.05 * allowed, 1.3 * allowed)
    axes.axhline(allowed, color=INK, linestyle="--", linewidth=0.9)
    axes.text(
        0.02,
        allowed * 1.03,
        f"counts as 0 below {allowed:g}",
        color=INK,
        transform=axes.get_yaxis_transform(),
    )


def _draw_panel(axes: "Axes", panel: SizePanel) -> None:
    """Draw the curves; an error bar smaller than its point is hidden by the point."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    if panel.logarithmic in ("both", "x"):
        axes.set_xscale("log", base=2)
    if panel.allowed:
        _draw_allowed(axes, panel.allowed)
    elif panel.logarithmic in ("both", "y"):
        _scale_y(axes, [value for curve in panel.curves for value in curve.values])
    axes.xaxis.set_major_locator(FixedLocator(list(panel.sizes)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    draw_grid(axes)
    axes.set_xlabel(printable(panel.axis), color=INK)
    axes.set_ylabel(printable(panel.label), color=INK)
    for index, curve in enumerate(panel.curves):
        axes.errorbar(
            panel.sizes,
            curve.values,
            yerr=curve.margins or None,
            label=printable(curve.name),
            markersize=4,
            **system_style(index),
        )
