"""Plot of measured against published numbers: a named point for each row of a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from heedful.visualise.figure_files import INK, draw_grid, drawing, printable
from heedful.visualise.report_page import ReportPage, check_report_ending, save_report_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINT, _BAND = "#0072b2", "#f3d9c6"
_SIDE, _LETTERS, _DPI = 4.4, 8.0, 200  # inches, points
_NAME = _LETTERS - 2.5
_LETTER_WIDTH, _LETTER_HEIGHT = 0.58 * _NAME, 1.15 * _NAME


@dataclass(frozen=True)
class PublishedPoint:
    """A row of a table."""

    name: str
    published: float
    measured: float


@dataclass(frozen=True)
class PublishedPanel:
    """A panel with one measure of all rows."""

    title: str
    points: tuple[PublishedPoint, ...]
    band: tuple[float, float]
    """Range of values that one model reaches with different seeds."""


def draw_published(panels: Sequence[PublishedPanel], out: Path, sheet: ReportPage) -> None:
    """
    Draw panels side by side.

    Raises `SettingError` if `check_report_ending` refuses `out`, and `StorageError` if the file
    cannot be written.
    """
    check_report_ending(out)
    with drawing(_LETTERS):
        save_report_page(_draw(panels), out, sheet)


def _draw(panels: Sequence[PublishedPanel]) -> "Figure":
    """Draw every panel."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_SIDE * len(panels), _SIDE), dpi=_DPI, facecolor="white")
    every = figure.subplots(1, len(panels), squeeze=False)[0]
    figure.subplots_adjust(left=0.08, right=0.98, bottom=0.12, top=0.93, wspace=0.2)
    for axes, panel in zip(every, panels, strict=True):
        _draw_panel(axes, panel)
    return figure


def _draw_panel(axes: "Axes", panel: PublishedPanel) -> None:
    """Draw points with their names, and the band that different seeds would reach."""
    axes.set_title(panel.title, loc="left", color=INK, fontweight="bold", fontsize=_LETTERS)
    draw_grid(axes)
    axes.axhspan(*panel.band, color=_BAND, linewidth=0)
    axes.set_xlabel("published", color=INK)
    axes.set_ylabel("measured", color=INK)
    for point in panel.points:
        axes.plot(point.published, point.measured, "o", markersize=3.5, color=_POINT)
    axes.margins(0.06)
    axes.autoscale_view()
    line = {"arrowstyle": "-", "color": INK, "linewidth": 0.4, "shrinkA": 0, "shrinkB": 2}
    for point, (x, y, is_far) in zip(panel.points, _place_names(axes, panel.points), strict=True):
        axes.annotate(
            printable(point.name),
            (point.published, point.measured),
            textcoords="offset points",
            xytext=(x, y),
            fontsize=_NAME,
            color=INK,
            arrowprops=line if is_far else None,
        )


class _Box(NamedTuple):
    """A rectangle in points."""

    left: float
    bottom: float
    right: float
    top: float

    def overlaps(self, box: "_Box") -> bool:
        """Return whether two rectangles overlap."""
        return not (
            self.right <= box.left
            or box.right <= self.left
            or self.top <= box.bottom
            or box.top <= self.bottom
        )

    def is_in(self, box: "_Box") -> bool:
        """Return whether this rectangle lies inside another rectangle."""
        return (
            box.left <= self.left
            and self.right <= box.right
            and box.bottom <= self.bottom
            and self.top <= box.top
        )


def _place_names(axes: "Axes", points: Sequence[PublishedPoint]) -> list[tuple[float, float, bool]]:
    """For each name, choose the nearest position that overlaps no name, point or edge."""
    scale = 72 / axes.figure.dpi
    around = axes.get_window_extent()
    panel = _Box(*(float(edge) * scale for edge in (around.x0, around.y0, around.x1, around.y1)))
    at = [axes.transData.transform((point.published, point.measured)) * scale for point in points]
    places = [(float(x), float(y)) for x, y in at]
    taken = [_Box(x - 2, y - 2, x + 2, y + 2) for x, y in places]
    chosen = []
    for point, at_point in zip(points, places, strict=True):
        width = _LETTER_WIDTH * len(printable(point.name))
        shift, box, is_far = _free_place(at_point, width, panel, taken)
        taken.append(box)
        chosen.append((*shift, is_far))
    return chosen


def _free_place(
    point: tuple[float, float], width: float, panel: _Box, taken: Sequence[_Box]
) -> tuple[tuple[float, float], _Box, bool]:
    """
    Find the nearest free position for a name, or the position next to its point if none is free.

    Returns the shift of the name from its point (right, up), its box, and whether it is far away.
    """
    for distance in range(7):
        right, rise = 4.0 + 3 * distance, 2.0 + 6 * distance
        for shift in (
            *((right, rise), (-right - width, rise)),
            *((right, -rise - _NAME), (-right - width, -rise - _NAME)),
        ):
            box = _name_box(point, shift, width)
            if box.is_in(panel) and not any(box.overlaps(taken_box) for taken_box in taken):
                return shift, box, distance > 0
    return (4.0, 2.0), _name_box(point, (4.0, 2.0), width), False


def _name_box(point: tuple[float, float], shift: tuple[float, float], width: float) -> _Box:
    """Return the rectangle of a name that is shifted from its point."""
    left, bottom = point[0] + shift[0], point[1] + shift[1]
    return _Box(left, bottom, left + width, bottom + _LETTER_HEIGHT)
