"""The picture of `benchmarks.parsers`: scores with intervals."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heedful.visualise.curves import system_style
from heedful.visualise.figure_files import INK, draw_grid, drawing, save_figure

_PARTS = {"dev": "development", "unseen": "unseen"}


def draw(rows: Sequence[dict[str, Any]], out: Path) -> None:
    """Draw the F1 of each parser on both parts, with 95% intervals over sentences."""
    from matplotlib.figure import Figure

    with drawing(8.0):
        figure = Figure(figsize=(5.2, 2.6), dpi=200, facecolor="white")
        axes = figure.subplots()
        draw_grid(axes)
        names = [row["name"].strip("`") for row in rows]
        axes.set_yticks(range(len(rows)), names)
        for index, (part, label) in enumerate(_PARTS.items()):
            scores = [row[part] for row in rows]
            axes.errorbar(
                [score["f1"] for score in scores],
                [row + 0.2 * index - 0.1 for row in range(len(rows))],
                xerr=[score["margin"] for score in scores],
                label=label,
                markersize=4,
                **system_style(index) | {"linestyle": "none"},
            )
        axes.invert_yaxis()
        axes.set_xlabel("labeled F1", color=INK)
        axes.tick_params(colors=INK)
        axes.legend(loc="lower right", frameon=False, labelcolor=INK)
        save_figure(figure, out)
