"""
Small curves as an SVG image for notebooks, drawn without a plotting library.

A picture has a panel for each measure. Text and axes have the color of the surrounding text, which
suits light and dark pages. `heedful.visualise.curves` draws the figure of `heedful plot`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from jaxtyping import Float64

from heedful.visualise.curves import thin_out
from heedful.visualise.figure_files import printable

# Sizes in pixels: width and height of a panel, its margins, and the font size.
_WIDTH, _HEIGHT = 340, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 30, 26
_LETTERS = 11
# A curve with more points than pixels shows no more detail.
_MOST_POINTS = _WIDTH
# Ticks are at these numbers times a power of ten.
_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
_TICKS = 4


@dataclass(frozen=True)
class SmallCurve:
    """One curve; points that are not finite are left out."""

    name: str
    """Name in the legend."""
    x: Float64[np.ndarray, " points"]
    y: Float64[np.ndarray, " points"]
    color: str
    """Color of the line."""
    has_dots: bool = False
    """Whether each point is marked."""

    @property
    def finite(self) -> tuple[np.ndarray, np.ndarray]:
        """The points that can be drawn; neighbors are averaged where there are too many."""
        real = np.isfinite(self.x) & np.isfinite(self.y)
        x, y, _, _ = thin_out(self.x[real], self.y[real], _MOST_POINTS)
        return x, y


def small_curves(panels: Sequence[Sequence[SmallCurve]]) -> str:
    """Draw the nonempty panels side by side; return an empty string if all are empty."""
    drawn = [panel for panel in panels if any(len(curve.finite[0]) for curve in panel)]
    if not drawn:
        return ""
    parts = "".join(_panel(panel, number * _WIDTH) for number, panel in enumerate(drawn))
    width = len(drawn) * _WIDTH
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{_HEIGHT}" '
        f'viewBox="0 0 {width} {_HEIGHT}" font-family="sans-serif" font-size="{_LETTERS}" '
        f'fill="currentColor" style="max-width: 100%">{parts}</svg>'
    )


def _panel(curves: Sequence[SmallCurve], left: int) -> str:
    """Draw one panel: legend, grid and curves."""
    points = [curve.finite for curve in curves]
    last = max(float(x.max()) for x, _ in points if len(x))
    values = np.concatenate([y for _, y in points])
    low, high = _range(float(values.min()), float(values.max()))
    across = (_WIDTH - _LEFT - _RIGHT) / (last or 1.0)
    down = (_HEIGHT - _TOP - _BOTTOM) / (high - low)

    def place(x: float, y: float) -> str:
        return f"{left + _LEFT + x * across:.1f},{_HEIGHT - _BOTTOM - (y - low) * down:.1f}"

    parts = []
    for tick in _ticks(low, high):
        start, height = place(0.0, tick).split(",")
        end = place(last or 1.0, tick).split(",")[0]
        parts.append(
            f'<line x1="{start}" x2="{end}" y1="{height}" y2="{height}" stroke="currentColor" '
            f'stroke-opacity="0.15"/>{_text(float(start) - 5, float(height) + 4, tick, "end")}'
        )
    for tick in _ticks(0.0, last):
        parts.append(_text(float(place(tick, low).split(",")[0]), _HEIGHT - 8.0, tick, "middle"))
    legend = float(left + _LEFT)
    for curve, (xs, ys) in zip(curves, points, strict=True):
        if not len(xs):
            continue
        places = [place(x, y) for x, y in zip(xs.tolist(), ys.tolist(), strict=True)]
        parts.append(
            f'<polyline points="{" ".join(places)}" fill="none" stroke="{curve.color}" '
            'stroke-width="1.5"/>'
        )
        if curve.has_dots or len(places) == 1:
            parts += [
                '<circle cx="{}" cy="{}" r="2.5" fill="{}"/>'.format(*at.split(","), curve.color)
                for at in places
            ]
        name = printable(curve.name)
        parts.append(
            f'<rect x="{legend:.0f}" y="8" width="10" height="10" fill="{curve.color}"/>'
            f'<text x="{legend + 14:.0f}" y="17">{escape(name)}</text>'
        )
        legend += 30 + 0.6 * _LETTERS * len(name)
    return "".join(parts)


def _text(x: float, y: float, number: float, anchor: str) -> str:
    """Write the number of a tick."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{number:,g}</text>'


def _range(low: float, high: float) -> tuple[float, float]:
    """Widen a range of values slightly to keep curves off the edge."""
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return (max(0.0, low - room) if low >= 0.0 else low - room), high + room


def _ticks(low: float, high: float) -> list[float]:
    """
    Choose round numbers within a range.

    >>> _ticks(0.0, 9.0)
    [0.0, 2.5, 5.0, 7.5]
    """
    if high <= low:
        return [low]
    power = 10.0 ** np.floor(np.log10((high - low) / _TICKS))
    step = next(float(power * size) for size in _ROUND if power * size * _TICKS >= high - low)
    first = int(np.ceil(low / step - 1e-9))
    return [round(number * step, 12) for number in range(first, int(high / step + 1e-9) + 1)]
