"""
Attention as lines between words, as in the paper's figures 3 to 5.

The sentence is drawn twice. Lines lead from each word at the top to the words that it attends to;
lines of larger weights are darker and wider. A head has the same color in every figure. If only
some words are queries, each head's lines end in a separate square at the key word. With several
heads, each head's number is then on its strongest line. A scale below shows how weights are drawn.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from heedful.visualise.figure_files import INK, cut_end, drawing, printable
from heedful.visualise.report_page import ReportPage, check_report_ending, save_report_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

# The explorer's colors (web/colors.js): equally light, so that no head looks more important.
HEAD_COLORS = (
    "#3077bf",
    "#ba5928",
    "#238556",
    "#b8508a",
    "#8b730f",
    "#7567c7",
    "#05818b",
    "#c24e56",
)
_HIGHLIGHT = "#e3e6ea"

# Lengths in inches, font sizes in points.
_CELL, _LINES, _PAD, _LETTERS, _DPI = 0.27, 1.55, 0.06, 9.0, 200
_SQUARES, _TITLE, _BETWEEN = 0.1, 0.3, 0.25
_LETTER, _WIDE_LETTER = 0.078, 0.135
_LONGEST_WORD = 20
# Weights below the first number are not drawn; the opacity makes the weakest line clearly visible.
_FAINT, _LEAST_OPACITY = 0.05, 0.3
_WIDTHS = (0.8, 2.6)
_SCALE_WEIGHTS, _SCALE = (0.1, 0.5, 1.0), 0.26
# Range of the positions of head numbers along lines, as fractions of the distance from the top.
_NUMBERS = (0.55, 0.93)
# Space between the names in a legend, in units of the width of a word.
_SPACE = 0.45
_MOST_PIXELS = 30_000


@dataclass(frozen=True)
class Head:
    """One head of a panel."""

    number: int
    """Index of the head in its layer, from 1, which selects its color; reused colors are darker."""
    weights: Float[np.ndarray, "words words"]
    """Row i is the attention of word i."""

    @property
    def name(self) -> str:
        """The head's name in a legend."""
        return f"head {self.number}"


@dataclass(frozen=True)
class Panel:
    """One of the panels of a figure."""

    title: str
    """Title above the panel."""
    heads: tuple[Head, ...]
    """Heads whose lines are drawn."""
    asking: tuple[int, ...] | None = None
    """Indices of the query words whose lines are drawn; all if None."""


def attention_lines(
    panels: Sequence[Panel], words: Sequence[str], run: str, out: Path, sheet: ReportPage
) -> None:
    """
    Draw attention as lines between words.

    `run`: the name of the run, which is printed below the panels. The page grows with the sentence,
    so the words stay readable.

    Raises `SettingError` if `check_report_ending` refuses `out`, and `ValueError` if the
    weights of a head do not fit the words. Raises `StorageError` if the file cannot be written.
    """
    check_report_ending(out)
    if not len(words):
        raise ValueError("there must be at least 1 word, but got none")
    for head in (head for panel in panels for head in panel.heads):
        if head.weights.shape != (len(words), len(words)):
            raise ValueError(
                f"weights of a head must have shape ({len(words)}, {len(words)}) for {len(words)} "
                f"words, but those of {head.name} have shape {head.weights.shape}"
            )
    titles = [panel.title for panel in panels]
    with drawing(_LETTERS, [*titles, *words, run], out.suffix):
        shown = [cut_end(printable(word), _LONGEST_WORD) for word in words]
        save_report_page(_draw(panels, shown, printable(run)), out, sheet)


def _draw(panels: Sequence[Panel], words: list[str], run: str) -> "Figure":
    """Draw the panels one below the other, and the scale below them."""
    from matplotlib.figure import Figure

    room = max(_length(word) for word in words) + _PAD
    width = max(len(words) * _CELL, 3.0)
    # A panel without heads consists of its title only.
    heights = [
        _TITLE + (room + _LINES + _bar(panel) + room if panel.heads else 0.0) for panel in panels
    ]
    height = sum(heights) + _BETWEEN * (len(panels) - 1) + _SCALE
    dpi = min(_DPI, _MOST_PIXELS / max(width, height))
    figure = Figure(figsize=(width, height), dpi=dpi, facecolor="white")
    top = height
    for panel, tall in zip(panels, heights, strict=True):
        if panel.heads:
            bottom = top - tall + room
            across = len(words) * _CELL / width
            box = (0, bottom / height, across, (_LINES + _bar(panel)) / height)
            _draw_panel(figure.add_axes(box), panel, words, room)
        else:
            figure.text(0, (top - tall) / height, printable(panel.title), color=INK, fontsize=10)
        top -= tall + _BETWEEN
    _draw_scale(figure.add_axes((0, 0, 1, _SCALE / height)), width, run)
    return figure


def _bar(panel: Panel) -> float:
    """Return the height of a panel's squares."""
    return _SQUARES if panel.asking is not None else 0.0


def _length(word: str) -> float:
    """Estimate the printed length of a word."""
    return sum(
        _WIDE_LETTER if unicodedata.east_asian_width(letter) in "WF" else _LETTER for letter in word
    )


def _draw_panel(axes: "Axes", panel: Panel, words: list[str], width: float) -> None:
    """Draw words, lines and squares; units are a word's width horizontally, an inch vertically."""
    from matplotlib.patches import Rectangle

    count, bar = len(words), _bar(panel)
    axes.set_xlim(-0.5, count - 0.5)
    axes.set_ylim(-bar, _LINES)
    axes.axis("off")
    for index in panel.asking or ():
        corner = (index - 0.5, _LINES + _PAD / 2)
        axes.add_patch(Rectangle(corner, 1, width, color=_HIGHLIGHT, lw=0, clip_on=False))
    for index, word in enumerate(words):
        for y, side in ((_LINES + _PAD, "bottom"), (-bar - _PAD, "top")):
            axes.text(index, y, word, rotation=90, ha="center", va=side, color=INK)
    _draw_lines(axes, panel, count)
    line = _LINES + width + _PAD + 0.08
    title = axes.text(-0.5, line, printable(panel.title), color=INK, fontsize=10, va="bottom")
    if len(panel.heads) > 1:
        _write_legend(axes, panel, title)


def _draw_lines(axes: "Axes", panel: Panel, count: int) -> None:
    """Draw all lines, the strongest last, and the squares at their ends."""
    from matplotlib.collections import LineCollection, PatchCollection
    from matplotlib.patches import Rectangle

    alone = panel.asking is not None
    rows = list(panel.asking) if panel.asking is not None else list(range(count))
    slot = 0.84 / max(len(panel.heads), 1 if alone else 0, 1)
    looks = []
    squares: list[tuple[Rectangle, tuple[float, ...]]] = []
    for place, head in enumerate(panel.heads):
        color = _color(head)
        shift = (place - (len(panel.heads) - 1) / 2) * slot if alone else 0.0
        for row in rows:
            for column in np.flatnonzero(head.weights[row] >= _FAINT).tolist():
                weight = min(1.0, float(head.weights[row, column]))
                ends = ((row, _LINES), (column + shift, 0.0))
                looks.append((weight, ends, (*color, _opacity(weight))))
        if alone and len(panel.heads) > 1:
            share = (place + 0.5) / len(panel.heads)
            _write_number(axes, head, rows[0], shift, share)
        if alone:
            for column, weight in enumerate(head.weights[rows].mean(axis=0).tolist()):
                square = Rectangle((column + shift - slot / 2, -_SQUARES), slot, _SQUARES)
                squares.append((square, (*color, min(1.0, weight))))
    looks.sort(key=lambda look: look[0])
    axes.add_collection(
        LineCollection(
            [ends for _, ends, _ in looks],
            colors=[color for _, _, color in looks],
            linewidths=[_line_width(weight) for weight, _, _ in looks],
            capstyle="round",
        ),
        autolim=False,
    )
    if squares:
        axes.add_collection(
            PatchCollection(
                [square for square, _ in squares],
                facecolors=[color for _, color in squares],
                edgecolors="none",
            ),
            autolim=False,
        )


def _opacity(weight: float) -> float:
    """Return the opacity of the line for a weight."""
    return _LEAST_OPACITY + (1 - _LEAST_OPACITY) * weight


def _line_width(weight: float) -> float:
    """Return the width in points of the line for a weight."""
    least, most = _WIDTHS
    return least + (most - least) * weight


def _write_number(axes: "Axes", head: Head, row: int, shift: float, share: float) -> None:
    """Write a head's number on its strongest line, without overlapping other numbers."""
    column = int(head.weights[row].argmax())
    first, last = _NUMBERS
    down = first + (last - first) * share
    axes.text(
        row + (column + shift - row) * down,
        _LINES * (1 - down),
        str(head.number),
        color=_color(head),
        fontsize=7,
        fontweight="bold",
        ha="center",
        va="center",
        bbox={"boxstyle": "circle,pad=0.12", "facecolor": "white", "edgecolor": "none"},
    )


def _draw_scale(axes: "Axes", width: float, run: str) -> None:
    """Draw a sample line for each of several weights, and the run's name; units are inches."""
    axes.set_xlim(0, width)
    axes.set_ylim(0, 1)
    axes.axis("off")
    x = _end_of(axes, axes.text(0, 0.4, "weight", color=INK, va="center", fontsize=8)) + 0.12
    for weight in _SCALE_WEIGHTS:
        axes.plot(
            [x, x + 0.3],
            [0.4, 0.4],
            color=INK,
            alpha=_opacity(weight),
            linewidth=_line_width(weight),
            solid_capstyle="round",
        )
        label = axes.text(x + 0.36, 0.4, f"{weight:g}", color=INK, va="center", fontsize=8)
        x = _end_of(axes, label) + 0.16
    axes.text(x + 0.1, 0.4, run, color=INK, va="center", fontsize=8)


def _color(head: Head) -> tuple[float, ...]:
    """Return the color of a head as red, green and blue."""
    from matplotlib.colors import to_rgb

    again, place = divmod(head.number - 1, len(HEAD_COLORS))
    return tuple(0.8**again * part for part in to_rgb(HEAD_COLORS[place]))


def _write_legend(axes: "Axes", panel: Panel, title: "Text") -> None:
    """Write the names of the heads in their colors after the title."""
    x = _end_of(axes, title) + 2 * _SPACE
    for head in panel.heads:
        color = _color(head)
        y = title.get_position()[1]
        text = axes.text(x, y, head.name, color=color, va="bottom", fontweight="bold")
        x = _end_of(axes, text) + _SPACE


def _end_of(axes: "Axes", text: "Text") -> float:
    """Return the right edge of a text in data coordinates."""
    return float(axes.transData.inverted().transform(text.get_window_extent().max)[0])
