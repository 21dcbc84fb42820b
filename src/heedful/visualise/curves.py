"""
Learning curves of several runs, as small multiples on one page.

All panels share the horizontal axis, and each run has the same color and marker in all of them.
People with the common kinds of color blindness can distinguish the colors (Okabe and Ito 2008).
Markers at validations, and dashes after the seventh run, help to distinguish the runs in black and
white.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from heedful.visualise.figure_files import (
    INK,
    check_ending,
    drawing,
    figure_content,
    printable,
    three_digits,
    write_output,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_DASHES = ("solid", "dashed", "dotted", "dashdot")
_GRID = "#e3e6ea"
# Ticks are at these numbers times a power of ten.
_ROUND = (1, 2, 2.5, 5, 10)

# Lengths in inches, font sizes in points; the figure has the width of a printed page.
_WIDTH, _PANEL_HEIGHT, _LEGEND_LINE, _LETTERS, _DPI = 7.4, 1.9, 0.19, 8.0, 200
_LONGEST_NAME = 48
# Maximum number of points per curve; a page cannot show more side by side.
_POINTS = 1500
# Maximum number of labels, because more labels would overlap. Maximum number of markers, because
# more markers would form a thick line.
_LABELS, _MARKED = 6, 40
# Distance of a label from its ring, and height of a label, as fractions of the panel's height.
_ABOVE, _ROOM = 0.1, 0.11

Line = Float64[np.ndarray, " lines"]
Validations = Float64[np.ndarray, " validations"]


@dataclass(frozen=True)
class RunCurves:
    """The curves of one run, as arrays."""

    name: str
    """Name in the legend."""
    x: Line
    """Horizontal positions of the lines of the training log: steps, tokens or time."""
    loss: Line
    nll: Line
    """Mean loss per target token without label smoothing; `loss` is the training loss."""
    learning_rate: Line
    speed: Line
    """Training speed in target tokens per second."""
    valid_x: Validations
    """Horizontal positions of the validations."""
    valid_loss: Validations
    """Loss on the validation text; NaN where there is none."""
    scores: Mapping[str, tuple[Validations, bool]]
    """Scores of the validation translations, by name, and whether higher is better."""
    figures: Mapping[str, Line] = field(default_factory=dict)
    """Mean values that some objectives log, such as the reward of samples; NaN if missing."""


@dataclass(frozen=True)
class _Panel:
    """One of the small multiples: how to compute its values from a run, and how to draw them."""

    title: str
    values: Callable[[RunCurves, int], np.ndarray]
    is_validation: bool = False
    is_perplexity: bool = False
    higher_is_better: bool | None = None
    """None if a panel has no best value to mark."""

    def points(self, run: RunCurves, smooth: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the horizontal positions at which a run has values, and the values."""
        x = run.valid_x if self.is_validation else run.x
        values = self.values(run, smooth)
        finite = np.isfinite(x) & np.isfinite(values)
        return x[finite], values[finite]

    def best_point(self, run: RunCurves) -> tuple[float, float] | None:
        """Find the best validation, if one is marked; the loss decides between equal values."""
        if self.higher_is_better is None:
            return None
        values = self.values(run, 1)
        finite = np.isfinite(run.valid_x) & np.isfinite(values)
        if not finite.any():
            return None
        ascending = -values if self.higher_is_better else values
        best = np.lexsort((run.valid_loss, ascending, ~finite))[0]
        return float(run.valid_x[best]), float(values[best])


def _score_panels(runs: Sequence[RunCurves]) -> list[_Panel]:
    """Create a panel for every metric in `RunCurves.scores`; all runs have the same metrics."""

    def panel(name: str, higher: bool) -> _Panel:
        return _Panel(
            f"Validation {name}",
            lambda run, _: run.scores[name][0],
            is_validation=True,
            higher_is_better=higher,
        )

    return [panel(name, higher) for name, (_, higher) in runs[0].scores.items()]


def _figure_panels(runs: Sequence[RunCurves]) -> list[_Panel]:
    """Create a panel for every mean in `RunCurves.figures`; all runs have the same names."""

    def panel(name: str) -> _Panel:
        return _Panel(f"Training {name}", lambda run, lines: moving_mean(run.figures[name], lines))

    return [panel(name) for name in runs[0].figures]


_PANELS = (
    _Panel("Training loss", lambda run, lines: moving_mean(run.loss, lines)),
    _Panel(
        "Training perplexity",
        lambda run, lines: _exp(moving_mean(run.nll, lines)),
        is_perplexity=True,
    ),
    _Panel(
        "Validation perplexity",
        lambda run, _: _exp(run.valid_loss),
        is_validation=True,
        is_perplexity=True,
        higher_is_better=False,
    ),
    _Panel("Learning rate", lambda run, _: run.learning_rate),
    _Panel("Target tokens per second", lambda run, lines: moving_mean(run.speed, lines)),
)


def learning_curves(
    runs: Sequence[RunCurves], out: Path, *, x_label: str = "steps", smooth: int = 1
) -> None:
    """
    Draw learning curves of several runs.

    Training and validation perplexity exclude label smoothing and share one scale, so they can be
    compared. The training loss has its own panel. Panels without values are left out. A training
    curve with too many points for the page is drawn as means of neighboring points. A band shows
    the smallest and largest of these points. Training curves other than the learning rate are
    averaged over `smooth` lines of the log; if `smooth` is above 1, a faint curve of the unsmoothed
    values replaces the band.

    Raises `SettingError` for an unknown suffix of `out`, `ValueError` if there is no run, and
    `StorageError` if the file cannot be written.
    """
    check_ending(out)
    write_output(out, learning_curves_content(runs, out.suffix, x_label, smooth), "figure")


def learning_curves_content(
    runs: Sequence[RunCurves], ending: str, x_label: str = "steps", smooth: int = 1
) -> bytes:
    """Draw learning curves and return the content of a file with the suffix `ending`."""
    if not runs:
        raise ValueError("runs must hold at least one run, but is empty")
    with drawing(_LETTERS, [run.name for run in runs], ending):
        return figure_content(_draw(runs, x_label, smooth), ending.lower()[1:])


def moving_mean(values: Line, lines: int) -> Line:
    """
    Compute a moving average.

    The window is centered, and narrower at both ends, so the average does not lag behind the
    values. The average is NaN where `values` is NaN. Cumulative sums make the cost independent of
    the window's width.

    >>> moving_mean(np.array([1.0, 2.0, 6.0, 4.0]), 3).tolist()
    [1.0, 3.0, 4.0, 4.0]
    """
    if lines <= 1:
        return values
    finite = np.isfinite(values)
    sums = np.concatenate(([0.0], np.cumsum(np.where(finite, values, 0.0))))
    counts = np.concatenate(([0], np.cumsum(finite)))
    place = np.arange(len(values))
    reach = np.minimum(lines // 2, np.minimum(place, place[::-1]))
    first, end = place - reach, place + reach + 1
    means = (sums[end] - sums[first]) / np.maximum(counts[end] - counts[first], 1)
    return np.where(finite, means, np.nan)


def _exp(losses: np.ndarray) -> np.ndarray:
    """Compute perplexities from losses; NaN if the perplexity would overflow."""
    return np.exp(np.where(losses < 700, losses, np.nan))


def _draw(runs: Sequence[RunCurves], x_label: str, smooth: int) -> "Figure":
    """Lay out the page: the legend on top, the panels below."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    every = [*_PANELS[:3], *_score_panels(runs), *_figure_panels(runs), *_PANELS[3:]]
    panels = [panel for panel in every if any(len(panel.points(run, 1)[0]) for run in runs)]
    across = 3 if len(panels) > 4 else 2
    down = max(1, math.ceil(len(panels) / across))
    names = [_shorten(printable(run.name)) for run in runs]
    width = _WIDTH * across / 3
    in_a_row = max(1, int(width / (0.5 + 0.064 * max(map(len, names)))))
    height = down * _PANEL_HEIGHT + math.ceil(len(runs) / in_a_row) * _LEGEND_LINE
    figure = Figure((width, height), _DPI, facecolor="white", layout="constrained")
    places = list(figure.subplots(down, across, squeeze=False).flat)
    for unused in places[len(panels) :]:
        unused.set_visible(False)
    drawn = dict(zip(panels, places, strict=False))
    for panel, axes in drawn.items():
        _prepare(axes, panel, x_label)
        for index, run in enumerate(runs):
            _draw_run(axes, panel, run, system_style(index), smooth)
    _share_scales(drawn)
    for panel, axes in drawn.items():
        _label_the_best(axes, panel, runs)
    handles = [Line2D([], [], **system_style(index), markersize=4) for index in range(len(runs))]
    figure.legend(
        handles, names, loc="outside upper left", ncols=in_a_row, frameon=False, labelcolor=INK
    )
    return figure


def _shorten(name: str) -> str:
    """Replace the middle of a name with “…” if it is too long for the legend."""
    half = _LONGEST_NAME // 2
    return name if len(name) <= _LONGEST_NAME else f"{name[: half - 1]}…{name[-half:]}"


def system_style(index: int) -> dict[str, Any]:
    """Choose color, marker and dashes; the first 28 runs all differ."""
    cycle, place = divmod(index, len(_COLORS))
    return {
        "color": _COLORS[place],
        "marker": _MARKERS[place],
        "linestyle": _DASHES[cycle % len(_DASHES)],
        "linewidth": 1.1,
    }


def _prepare(axes: "Axes", panel: _Panel, x_label: str) -> None:
    """Set a panel's title, axis label and ticks, and draw thin grid lines."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set_title(panel.title, loc="left", color=INK, fontsize=_LETTERS, fontweight="bold")
    axes.set_xlabel(x_label, color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    axes.grid(axis="y", color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=2.5, color=INK, labelcolor=INK)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=_ROUND))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=_ROUND))
    axes.xaxis.set_major_formatter(FuncFormatter(_tick))
    axes.yaxis.set_major_formatter(FuncFormatter(_tick))


def _tick(value: float, _: object = None) -> str:
    """Format a number on an axis: 0.002, 15, 250k, 1.5M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _draw_run(
    axes: "Axes", panel: _Panel, run: RunCurves, style: dict[str, Any], smooth: int
) -> None:
    """Draw one measure of one run."""
    x, values = panel.points(run, smooth)
    if not len(x):
        return
    if panel.is_validation:
        size = 3.0 if len(values) <= _MARKED else 0.0
        axes.plot(x, values, **style, markersize=size, clip_on=False)
        return
    middle, mean, low, high = thin_out(x, values)
    if smooth > 1:
        raw = thin_out(*panel.points(run, 1))
        axes.plot(*raw[:2], color=style["color"], linewidth=0.6, alpha=0.3)
    elif len(middle) < len(x):
        axes.fill_between(middle, low, high, color=style["color"], alpha=0.2, linewidth=0)
    axes.plot(middle, mean, **style, markersize=3.0 if len(x) == 1 else 0.0)


def thin_out(x: np.ndarray, values: np.ndarray, most: int = _POINTS) -> tuple[np.ndarray, ...]:
    """Average neighboring points if there are too many; return positions, means, minima, maxima."""
    if len(x) <= most:
        return x, values, values, values
    edges = np.linspace(0, len(x), most, endpoint=False).astype(int)
    counts = np.diff(edges, append=len(x))
    return (
        np.add.reduceat(x, edges) / counts,
        np.add.reduceat(values, edges) / counts,
        np.minimum.reduceat(values, edges),
        np.maximum.reduceat(values, edges),
    )


def _share_scales(drawn: Mapping[_Panel, "Axes"]) -> None:
    """Give all panels the same horizontal range, and both perplexities the same vertical range."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    right = max((axes.dataLim.xmax for axes in drawn.values()), default=1.0)
    for axes in drawn.values():
        axes.set_xlim(0, right * 1.02 or 1)
        if axes.dataLim.ymin >= 0:
            axes.set_ylim(bottom=0)
    perplexities = [axes for panel, axes in drawn.items() if panel.is_perplexity]
    for axes in perplexities:
        low = min(panel_axes.dataLim.ymin for panel_axes in perplexities)
        high = max(panel_axes.dataLim.ymax for panel_axes in perplexities)
        formatter = axes.yaxis.get_major_formatter()
        axes.set_yscale("log")
        room = (high / low) ** 0.05 * 1.02
        axes.set_ylim(1 if low < 1.5 else low / room, high * room)
        wide = LogLocator(subs=(1,) if high > 1e4 * low else (1, 3))
        axes.yaxis.set_major_locator(wide if high > 10 * low else MaxNLocator(5, steps=_ROUND))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(formatter)


def _label_the_best(axes: "Axes", panel: _Panel, runs: Sequence[RunCurves]) -> None:
    """Mark each run's best validation with a ring, and write its value if there are few runs."""
    labels = []
    is_score = panel.higher_is_better is not None and not panel.is_perplexity
    if is_score and len(runs) <= _LABELS:
        low, high = axes.get_ylim()  # add space above the best values for their labels
        axes.set_ylim(low, low + (high - low) / (1 - _ROOM * len(runs)))
    for index, run in enumerate(runs):
        point, color = panel.best_point(run), system_style(index)["color"]
        if point is None:
            continue
        axes.plot(*point, "o", markersize=6.5, markerfacecolor="none", color=color, clip_on=False)
        left, height = axes.transLimits.transform(axes.transScale.transform(point))
        text = three_digits(point[1]) if panel.is_perplexity else f"{point[1]:.1f}"
        labels.append((float(height) + _ABOVE, float(left), text, color))
    if len(labels) > _LABELS:
        return
    labels.sort()
    heights = _apart([height for height, *_ in labels])
    for height, (_, left, text, color) in zip(heights, labels, strict=True):
        place: dict[str, Any] = {"ha": "center", "va": "center", "transform": axes.transAxes}
        axes.text(left, height, text, color=color, **place)


def _apart(heights: Sequence[float]) -> list[float]:
    """Move labels apart by at least the height of a label; `heights` are in ascending order."""
    gap = 0.1
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + gap) if moved else height)
    for index in range(len(moved) - 1, -1, -1):
        highest = 1.0 if index == len(moved) - 1 else moved[index + 1] - gap
        moved[index] = min(moved[index], highest)
    return moved
