"""Published numbers against measured ones: a point a row, with its name."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.visualise.figure_files import INK, draw_grid, drawing, printable
from heedful.visualise.report_page import ReportPage, check_report_ending, save_report_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINT, _BAND = "#0072b2", "#f3d9c6"
_SIDE, _LETTERS, _DPI = 3.7, 8.0, 200  # inches, points


@dataclass(frozen=True)
class PublishedPoint:
    """A row of a table."""

    name: str
    published: float
    measured: float


@dataclass(frozen=True)
class PublishedPanel:
    """One number of all rows."""

    title: str
    points: tuple[PublishedPoint, ...]
    band: tuple[float, float]
    """Measured values that are no difference."""


def draw_published(panels: Sequence[PublishedPanel], out: Path, sheet: ReportPage) -> None:
    """
    Draw panels side by side.

    Raises `SettingError` if the ending of `out` is none of the four, `StorageError` if the file
    cannot be written.
    """
    check_report_ending(out)
    with drawing(_LETTERS):
        save_report_page(_draw(panels), out, sheet)


def _draw(panels: Sequence[PublishedPanel]) -> "Figure":
    """Draw every panel."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_SIDE * len(panels), _SIDE), dpi=_DPI, facecolor="white")
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _draw_panel(axes, panel)
    figure.subplots_adjust(left=0.08, right=0.98, bottom=0.12, top=0.93, wspace=0.2)
    return figure


def _draw_panel(axes: "Axes", panel: PublishedPanel) -> None:
    """Draw points with their names, and the band of no difference."""
    axes.set_title(panel.title, loc="left", color=INK, fontweight="bold", fontsize=_LETTERS)
    draw_grid(axes)
    axes.axhspan(*panel.band, color=_BAND, linewidth=0)
    axes.set_xlabel("published", color=INK)
    axes.set_ylabel("measured", color=INK)
    for point in panel.points:
        axes.plot(point.published, point.measured, "o", markersize=3.5, color=_POINT)
        axes.annotate(
            printable(point.name),
            (point.published, point.measured),
            textcoords="offset points",
            xytext=(4, 2),
            fontsize=_LETTERS - 2.5,
            color=INK,
        )
