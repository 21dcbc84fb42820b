"""
Multi-page attention files: every head of every layer.

::

    .pdf           one page for each sheet
    .png, .svg     one sheet fills the page; several sheets are rows of small panels
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from heedful.visualise.figure_files import INK, check_ending, drawing, printable, save_figure
from heedful.visualise.panels import (
    CELL,
    LETTERS,
    Canvas,
    draw_page,
    full_scale,
    label,
    write_tokens,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Maximum width in inches of one panel, and of a row of small panels; squares shrink to fit.
_PANEL, _ROW = 17.4, 22.0
_SMALLEST_CELL, _SMALL_CELL = 0.11, 0.2
# Maximum number of pixels in a picture of many panels; drawing takes about 12 bytes per pixel.
_PIXELS = 60e6
_TITLE, _NAME = 0.28, 0.36
# Width of a letter in inches per point of font size, and height of a slanted label divided by its
# length.
_LETTER, _RISE = 0.62 / 72, 0.71


@dataclass(frozen=True)
class HeatmapPage:
    """
    A sheet of panels that belong together, such as the heads of one layer.

    All panels of a sheet have the same tokens.

    Raises `ValueError` if there is no panel, or if a panel does not fit the tokens.
    """

    title: str
    """The line above the panels."""
    panels: tuple[tuple[str, np.ndarray], ...]
    """Name and weights of each panel."""
    rows: tuple[str, ...]
    """Query tokens."""
    columns: tuple[str, ...]
    """Key tokens."""

    def __post_init__(self) -> None:
        """Check shapes."""
        wanted = (len(self.rows), len(self.columns))
        shapes = [panel.shape for _, panel in self.panels]
        if not shapes or 0 in wanted or any(shape != wanted for shape in shapes):
            raise ValueError(
                f"a sheet must have panels of shape {wanted}, without dimensions of 0, but has "
                f"{shapes}"
            )


def write_heatmap_pages(sheets: Sequence[HeatmapPage], out: Path, *, numbers: bool = False) -> None:
    """
    Write sheets to one file.

    Squares and text shrink for long sentences, so readers must enlarge pages with many tokens; PDF
    and SVG are better for this than PNG. The same input gives the same bytes.

    Raises `SettingError` if `check_ending` refuses `out`, and `StorageError` if the file cannot be
    written.
    """
    check_ending(out)
    texts = [text for s in sheets for text in (s.title, *s.rows, *s.columns, *dict(s.panels))]
    with drawing(LETTERS, texts, out.suffix):
        if out.suffix.lower() == ".pdf" or len(sheets) == 1:
            pages = (_page(sheet, numbers) for sheet in sheets)
            save_figure(next(pages), out, pages)
        else:
            save_figure(_rows(sheets, numbers), out)


def _page(sheet: HeatmapPage, numbers: bool) -> "Figure":
    """Draw one sheet; squares shrink if it has many tokens."""
    longest = max(len(sheet.rows), len(sheet.columns))
    return draw_page(
        dict(sheet.panels),
        [*map(label, sheet.rows)],
        [*map(label, sheet.columns)],
        printable(sheet.title),
        cell=min(CELL, _PANEL / longest),
        numbers=numbers,
    )


def _rows(sheets: Sequence[HeatmapPage], numbers: bool) -> "Figure":
    """Draw each sheet as a row of small panels; tokens are written only where they change."""
    longest = max(len(tokens) for sheet in sheets for tokens in (sheet.rows, sheet.columns))
    panels = max(len(sheet.panels) for sheet in sheets)
    largest = CELL if panels < 4 else _SMALL_CELL
    cell = min(largest, max(_SMALLEST_CELL, _ROW / panels / longest))
    letters = LETTERS * cell / CELL
    gap = max(2 * cell, 0.2)
    columns = [[*map(label, sheet.columns)] for sheet in sheets]
    pairs = [(sheet.rows, sheet.columns) for sheet in sheets]
    above = [
        max(map(len, own)) * letters * _LETTER * _RISE + 0.12 if pair != before else 0.0
        for own, pair, before in zip(columns, pairs, [None, *pairs[:-1]], strict=True)
    ]
    heights = [
        _TITLE + top + len(sheet.rows) * cell + _NAME
        for top, sheet in zip(above, sheets, strict=True)
    ]
    width = max(len(sheet.panels) * (len(sheet.columns) * cell + gap) for sheet in sheets)
    squares_of_all = sum(panel.size for sheet in sheets for _, panel in sheet.panels)
    canvas = Canvas(width, sum(heights), cell, _PIXELS, squares_of_all)
    full = full_scale(max(float(p.max()) for sheet in sheets for _, p in sheet.panels))
    start = 0.0
    for sheet, own, top, height in zip(sheets, columns, above, heights, strict=True):
        for index, (name, weights) in enumerate(sheet.panels):
            left = index * (len(sheet.columns) * cell + gap)
            axes, squares = canvas.panel(left, start + _TITLE + top, weights, full, numbers=numbers)
            axes.set_xlabel(name, color=INK, labelpad=3, fontsize=8)
            write_tokens(axes, [] if index else [*map(label, sheet.rows)], own if top else [])
            if index == 0:
                axes.set_title(printable(sheet.title), loc="left", color=INK, pad=6, fontsize=10)
        start += height
    canvas.scale(width + 0.1, _TITLE + above[0], 1.2, squares)
    return canvas.figure
