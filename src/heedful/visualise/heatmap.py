"""
Attention as a picture: who looked where, and how much.

Rows are the tokens that ask, columns the tokens that are looked at, and the darker a square the
larger the weight. One size of square serves every figure, so the page grows with the sentences
and the words stay readable.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from heedful.visualise.page import INK, check_ending, drawing, printable, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

_COLOURS = ("#f4f7fa", "#bcd6e8", "#6fa8cf", "#2c6fa6", "#0d3358")

# Lengths in inches, letters in points.
_CELL, _GAP, _LETTERS = 0.29, 0.45, 9.5
_LONGEST_TOKEN = 24

# No picture of more than this many pixels, or of a side longer than Agg can draw.
_DPI, _PIXELS, _SIDE = 160, 100e6, 50_000


def attention_heatmap(
    weights: np.ndarray,
    row_tokens: Sequence[str],
    column_tokens: Sequence[str],
    out: Path,
    title: str = "",
) -> None:
    """
    Draw attention weights as a heat map.

    Parameters
    ----------
    weights : numpy.ndarray of float, shape (rows, columns) or (heads, rows, columns)
        How much each row's token attends to each column's token.
    row_tokens : sequence of str
        Tokens that attend (the target), written on the left.
    column_tokens : sequence of str
        Tokens attended to (the source), written along the top.
    out : pathlib.Path
        File to write; its ending, ``.png``, ``.svg`` or ``.pdf``, says in which format.
    title : str, default ""
        Line above the picture.

    Raises
    ------
    SettingError
        If the ending of `out` is none of the three.
    ValueError
        If the shape of `weights` does not fit the tokens, or a weight is not finite.
    MissingExtra
        If matplotlib is not installed.
    StorageError
        If the file cannot be written.

    Notes
    -----
    Several heads become small multiples in one scale of colour, their mean first, as in the
    paper's figures 3 to 5. The file appears whole or not at all, and the same input gives the
    same bytes. A letter that no installed font has is drawn as a box.
    """
    check_ending(out)
    panels = _panels(np.asarray(weights, dtype=float), len(row_tokens), len(column_tokens))
    with drawing(_LETTERS):
        rows, columns = [*map(_label, row_tokens)], [*map(_label, column_tokens)]
        figure = _draw(panels, rows, columns, printable(title))
        save_figure(figure, out)


def _panels(weights: np.ndarray, rows: int, columns: int) -> dict[str, np.ndarray]:
    """Name the pictures to draw, after a check of the shape."""
    if weights.shape[-2:] != (rows, columns) or weights.ndim not in (2, 3) or not weights.size:
        raise ValueError(
            f"weights must have shape ({rows}, {columns}) or (heads, {rows}, {columns}) for "
            f"{rows} row tokens and {columns} column tokens, none of them 0, "
            f"but have shape {weights.shape}"
        )
    if not np.isfinite(weights).all():
        raise ValueError("weights must be finite numbers, but some are infinite or not numbers")
    if weights.ndim == 2:
        return {"": weights}
    if len(weights) == 1:
        return {"head 1": weights[0]}
    heads = {f"head {number}": head for number, head in enumerate(weights, start=1)}
    return {"mean": weights.mean(axis=0), **heads}


def _label(token: str) -> str:
    """Make a token short enough to print."""
    shown = printable(token)
    return shown if len(shown) <= _LONGEST_TOKEN else shown[: _LONGEST_TOKEN - 1] + "…"


def _draw(
    panels: dict[str, np.ndarray], rows: list[str], columns: list[str], title: str
) -> "Figure":
    """Lay the panels out in a grid; only its top and left edges carry tokens."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    width, height = _CELL * len(columns), _CELL * len(rows)
    across = _panels_across(len(panels), width, height)
    down = math.ceil(len(panels) / across)
    page = (across * (width + _GAP), down * (height + _GAP))
    dpi = min(_DPI, math.sqrt(_PIXELS / (page[0] * page[1])), _SIDE / max(page))
    figure = Figure(figsize=page, dpi=dpi, facecolor="white")
    colours = LinearSegmentedColormap.from_list("heedful", _COLOURS)
    full = _full_scale(max(float(panel.max()) for panel in panels.values()))

    def place(left: float, top: float, width: float, height: float) -> "Axes":
        """Make room for axes, in inches from the top left corner."""
        bottom = page[1] - top - height
        box = (left / page[0], bottom / page[1], width / page[0], height / page[1])
        return figure.add_axes(box)

    for index, (name, panel) in enumerate(panels.items()):
        row, column = divmod(index, across)
        axes = place(column * (width + _GAP), row * (height + _GAP), width, height)
        squares = _draw_squares(axes, panel, colours, full)
        axes.set_xlabel(name, color=INK, labelpad=5)
        _write_tokens(axes, rows if column == 0 else [], columns if row == 0 else [])
        if index == 0:
            axes.set_title(title, loc="left", color=INK, pad=10, fontsize=12)
    axes = place(across * (width + _GAP) - _GAP + 0.25, 0.0, 0.11, max(0.8, min(height, 2.4)))
    scale = figure.colorbar(squares, cax=axes, ticks=[0, full / 2, full], format="{x:g}")
    scale.outline.set_visible(False)
    axes.tick_params(length=0, labelsize=8, labelcolor=INK)
    return figure


def _panels_across(count: int, width: float, height: float) -> int:
    """Return how many panels stand side by side: a page a little wide, with few empty places."""

    def ugliness(across: int) -> float:
        down = math.ceil(count / across)
        ratio = across * (width + _GAP) / (down * (height + _GAP))
        return abs(math.log(ratio / 1.4)) + (across * down - count) / count

    return min(range(1, count + 1), key=ugliness)


def _full_scale(largest: float) -> float:
    """Return a round number for the darkest colour, 1 for all but faint attention."""
    return next((full for full in (0.05, 0.1, 0.2, 0.5, 1.0) if 0 < largest <= full), largest or 1)


def _draw_squares(axes: "Axes", panel: np.ndarray, colours: "Colormap", full: float) -> "QuadMesh":
    """Fill the squares of one panel, the first row on top."""
    large = panel.size > 10_000
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, pad=4, labelcolor=INK)
    return axes.pcolormesh(
        panel,
        cmap=colours,
        vmin=0,
        vmax=full,
        edgecolors="none" if large else "white",
        linewidth=0 if large else 0.8,
        rasterized=large,
    )


def _write_tokens(axes: "Axes", rows: list[str], columns: list[str]) -> None:
    """Write tokens on the left and along the top."""
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
