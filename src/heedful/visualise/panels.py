"""
Panels of squares, which make up every attention heat map.

Rows are query tokens and columns are key tokens; the darker a square, the larger the weight.
Lengths are in inches, font sizes in points.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.visualise.figure_files import INK, cut_end, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

CELL, GAP, LETTERS = 0.29, 0.45, 9.5
_COLORS = ("#f4f7fa", "#bcd6e8", "#6fa8cf", "#2c6fa6", "#0d3358")
_INK = 0.65
_LONGEST_TOKEN = 24
# With more squares than this on a page, each panel is an image without lines between squares.
_MANY = 8_000

# Resolution; maximum number of pixels; maximum side in pixels that the Agg renderer can draw.
_DPI, _PIXELS, _SIDE = 160, 100e6, 50_000


class Canvas:
    """A page; the positions of its axes are in inches from the top left corner."""

    def __init__(
        self,
        width: float,
        height: float,
        cell: float = CELL,
        pixels: float = _PIXELS,
        squares: int = 0,
    ) -> None:
        from matplotlib.figure import Figure

        self.size = width, height
        self.many = squares > _MANY
        self.cell, self.letters = cell, LETTERS * cell / CELL
        dpi = min(_DPI, math.sqrt(pixels / (width * height)), _SIDE / max(width, height))
        self.figure: Figure = Figure(figsize=self.size, dpi=dpi, facecolor="white")

    def place(self, left: float, top: float, width: float, height: float) -> "Axes":
        """Add axes; labels may extend beyond the page, because the saved file includes them."""
        page = self.size
        bottom = page[1] - top - height
        return self.figure.add_axes(
            (left / page[0], bottom / page[1], width / page[0], height / page[1])
        )

    def panel(
        self, left: float, top: float, weights: np.ndarray, full: float, *, numbers: bool = False
    ) -> tuple["Axes", "ScalarMappable"]:
        """Draw weights as squares, the first row on top."""
        # Each square is drawn separately unless there are very many. Color depth grows with the
        # 0.65th power of a weight, as in the explorer, so that small weights stay visible.
        from matplotlib.colors import LinearSegmentedColormap, PowerNorm

        rows, columns = weights.shape
        axes = self.place(left, top, columns * self.cell, rows * self.cell)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, pad=4 * self.cell / CELL, labelcolor=INK, labelsize=self.letters)
        colors = LinearSegmentedColormap.from_list("heedful", _COLORS)
        shades: dict[str, Any] = {"cmap": colors, "norm": PowerNorm(_INK, vmin=0, vmax=full)}
        squares: ScalarMappable
        if self.many:
            extent = (0, columns, rows, 0)
            squares = axes.imshow(
                weights, extent=extent, aspect="auto", interpolation="none", **shades
            )
        else:
            thin = 0.8 * self.cell / CELL
            squares = axes.pcolormesh(weights, edgecolors="white", linewidth=thin, **shades)
            axes.invert_yaxis()
        if numbers:
            self._write_numbers(axes, weights, full)
        return axes, squares

    def _write_numbers(self, axes: "Axes", weights: np.ndarray, full: float) -> None:
        """Write each weight of at least 0.005 into its square: two decimals, no leading zero."""
        for (row, column), weight in np.ndenumerate(weights):
            text = f"{weight:.2f}".removeprefix("0") if weight >= 0.005 else ""
            color = "white" if weight > 0.35 * full else INK
            at = column + 0.5, row + 0.5
            size = 0.66 * self.letters
            axes.text(*at, text, color=color, ha="center", va="center", fontsize=size)

    def scale(self, left: float, top: float, height: float, what: "ScalarMappable") -> None:
        """Draw the color scale with a given height, whatever the size of the squares."""
        axes = self.place(left, top, 0.11, height)
        full = what.get_clim()[1]
        scale = self.figure.colorbar(what, cax=axes, ticks=[0, full / 2, full], format="{x:g}")
        scale.outline.set_visible(False)
        assert scale.solids is not None
        # Otherwise matplotlib would save the color scale as an image of the whole page.
        scale.solids.set_rasterized(False)
        scale.solids.set_edgecolor("face")
        axes.tick_params(length=0, labelsize=8, labelcolor=INK)


def write_tokens(axes: "Axes", rows: Sequence[str], columns: Sequence[str]) -> None:
    """Write row tokens on the left and column tokens along the top."""
    axes.xaxis.tick_top()
    axes.set_yticks([index + 0.5 for index in range(len(rows))], rows)
    axes.set_xticks(
        [index + 0.5 for index in range(len(columns))],
        columns,
        rotation=45,
        ha="left",
        va="bottom",
        rotation_mode="anchor",
    )


def label(token: str) -> str:
    """Format a token as a label: escape control characters and cut it if it is too long."""
    return cut_end(printable(token), _LONGEST_TOKEN)


def full_scale(largest: float) -> float:
    """Return the end of the color scale: the smallest of five round numbers not below `largest`."""
    return next((full for full in (0.05, 0.1, 0.2, 0.5, 1.0) if 0 < largest <= full), largest or 1)


def draw_page(
    panels: Mapping[str, np.ndarray],
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    *,
    cell: float = CELL,
    numbers: bool = False,
) -> "Figure":
    """Lay out panels in a grid; only its top and left edges have tokens."""
    width, height = cell * len(columns), cell * len(rows)
    across = _panels_across(len(panels), width, height)
    down = math.ceil(len(panels) / across)
    squares_of_all = len(panels) * len(rows) * len(columns)
    page = across * (width + GAP), down * (height + GAP)
    canvas = Canvas(*page, cell, squares=squares_of_all)
    full = full_scale(max(float(panel.max()) for panel in panels.values()))
    for index, (name, panel) in enumerate(panels.items()):
        row, column = divmod(index, across)
        left, top = column * (width + GAP), row * (height + GAP)
        axes, squares = canvas.panel(left, top, panel, full, numbers=numbers)
        axes.set_xlabel(name, color=INK, labelpad=5)
        write_tokens(axes, rows if column == 0 else [], columns if row == 0 else [])
        if index == 0:
            axes.set_title(title, loc="left", color=INK, pad=10, fontsize=12)
    tall = max(0.8, min(height, 2.4))
    canvas.scale(across * (width + GAP) - GAP + 0.25, 0.0, tall, squares)
    return canvas.figure


def _panels_across(count: int, width: float, height: float) -> int:
    """Choose the number of panels per row for a slightly wide page with few empty cells."""

    def ugliness(across: int) -> float:
        down = math.ceil(count / across)
        ratio = across * (width + GAP) / (down * (height + GAP))
        return abs(math.log(ratio / 1.4)) + (across * down - count) / count

    return min(range(1, count + 1), key=ugliness)
