"""
Positional encodings as pictures: vectors above, dot products below.

Each column shows one encoding. Positive values are blue, negative values orange, and zero is white.
Each picture has its own color scale, because an encoding by index has much larger values than
sinusoids.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from heedful.visualise.figure_files import INK, drawing, printable
from heedful.visualise.report_page import ReportPage, check_report_ending, save_report_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BELOW_ABOVE = ("#8c3d00", "#d55e00", "#f4b98a", "#ffffff", "#9cc7e6", "#0072b2", "#04395a")
_GRID = "#c9ced6"

# Lengths in inches, font sizes in points.
_SIDE, _GAP, _ROW_GAP, _LETTERS, _DPI = 1.92, 0.34, 0.72, 8.0, 200
_CURVE = 0.95
_LEFT, _TOP = 0.5, 0.55


@dataclass(frozen=True)
class PositionTable:
    """The vectors and dot products of one encoding, as arrays."""

    name: str
    """Title above the column."""
    formula: str
    """Formula below the name."""
    table: Float[np.ndarray, "positions width"]
    """The vectors."""
    products: Float[np.ndarray, "positions positions"]
    """Their dot products."""
    by_distance: Float[np.ndarray, " positions"]
    """Mean dot product at each distance, divided by the mean at distance 0."""


def position_pictures(tables: Sequence[PositionTable], out: Path, sheet: ReportPage) -> None:
    """
    Draw several positional encodings.

    The upper row shows the vectors, the middle row the dot products of all positions, and the lower
    row their means by distance.

    Raises `SettingError` if `check_report_ending` refuses `out`, and `ValueError` if there is no
    table. Raises `StorageError` if the file cannot be written.
    """
    check_report_ending(out)
    if not tables:
        raise ValueError("there must be at least one table to draw")
    with drawing(_LETTERS):
        save_report_page(_draw(tables), out, sheet)


def _draw(tables: Sequence[PositionTable]) -> "Figure":
    """Lay out a column per encoding, and three rows."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    width = _LEFT + len(tables) * (_SIDE + _GAP)
    height = _TOP + 2 * (_SIDE + _ROW_GAP) + _CURVE
    figure = Figure(figsize=(width, height), dpi=_DPI, facecolor="white")
    colors = LinearSegmentedColormap.from_list("positions", _BELOW_ABOVE)

    def place(column: int, top: float, wide: float, tall: float, left: float = 0.0) -> "Axes":
        """Add axes, in inches from the top left corner of a column."""
        x = _LEFT + column * (_SIDE + _GAP) + left
        return figure.add_axes(
            (x / width, (height - top - tall) / height, wide / width, tall / height)
        )

    key = "blue: above 0, orange: below 0, white: 0"
    figure.text(1 - _GAP / width, 1.0, key, color=INK, fontsize=7, ha="right", va="bottom")
    for column, encoding in enumerate(tables):
        first = column == 0
        axes = place(column, _TOP, _SIDE, _SIDE)
        axes.set_title(printable(encoding.name), loc="left", color=INK, fontsize=10, pad=17)
        axes.text(
            0, 1.035, printable(encoding.formula), color=INK, fontsize=6, transform=axes.transAxes
        )
        _squares(axes, encoding.table, colors, "position" if first else "", "column")
        middle = _TOP + _SIDE + _ROW_GAP
        axes = place(column, middle, _SIDE, _SIDE)
        _squares(axes, encoding.products, colors, "position" if first else "", "position")
        if first:
            axes.set_title("dot products", loc="left", color=INK, fontsize=8, pad=4)
        _curve(place(column, middle + _SIDE + _ROW_GAP * 0.85, _SIDE, _CURVE), encoding, first)
    return figure


def _squares(axes: "Axes", values: np.ndarray, colors: object, y_label: str, x_label: str) -> None:
    """Draw a table as squares, the first position on top, with its color scale."""
    from matplotlib.ticker import MaxNLocator

    full = float(np.abs(values).max()) or 1.0
    rows, columns = values.shape
    axes.imshow(
        values,
        cmap=colors,  # type: ignore[arg-type]
        vmin=-full,
        vmax=full,
        aspect="auto",
        interpolation="nearest" if max(rows, columns) <= 300 else "antialiased",
        extent=(0.5, columns + 0.5, rows + 0.5, 0.5),
    )
    axes.spines[:].set(color=_GRID, linewidth=0.6)
    axes.tick_params(length=2, width=0.5, pad=2, labelsize=6, color=_GRID, labelcolor=INK)
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    if columns == 1:
        axes.set_xticks([1])
    axes.set_xlabel(x_label, color=INK, fontsize=7, labelpad=1)
    axes.set_ylabel(y_label, color=INK, fontsize=7, labelpad=2)
    axes.text(
        1,
        -0.2,
        f"darkest: {full:,.0f}" if full >= 100 else f"darkest: {full:.3g}",
        color=INK,
        fontsize=6,
        ha="right",
        transform=axes.transAxes,
    )


def _curve(axes: "Axes", table: PositionTable, first: bool) -> None:
    """Plot the mean dot products against the distance."""
    from matplotlib.ticker import MaxNLocator

    axes.axhline(0, color=_GRID, linewidth=0.6)
    axes.plot(table.by_distance, color="#0072b2", linewidth=1.2, clip_on=False)
    low, high = float(table.by_distance.min()), float(table.by_distance.max())
    axes.set_ylim(min(low, 0) - 0.04 * (high - low), max(high, 1) * 1.04)
    axes.set_xlim(0, len(table.by_distance) - 1 or 1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(color=_GRID, linewidth=0.6)
    axes.tick_params(length=2, width=0.5, pad=2, labelsize=6, color=_GRID, labelcolor=INK)
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.set_xlabel("distance", color=INK, fontsize=7, labelpad=1)
    if first:
        axes.set_title("mean product by distance", loc="left", color=INK, fontsize=8, pad=4)
