"""SVG curves for the page."""

from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt

from benchmarks.speed.comparisons import Measured, toolkit

AXES = {
    "batch": ("tokens a side of a step", "trained tokens/s", "tokens"),
    "length": ("mean tokens of a sentence", "trained tokens/s", "tokens"),
    "vocabulary": ("symbols", "trained tokens/s", "tokens"),
    "search": ("sentences of a batch", "translated tokens/s, beam 4", "tokens"),
}
HUES = {"heedful": "#0b6e4f", "marian": "#c1666b", "ctranslate2": "#4c6085"}


def pictures(name: str, section: Measured) -> list[str]:
    """List what the page shows of a section's curves."""
    if name == "corpus":
        return ["![microseconds by pairs](speed-corpus.svg)"]
    return [f"![{AXES[curve][1]} by {AXES[curve][0]}](speed-{curve}.svg)" for curve in section]


def draw(name: str, section: Measured, folder: Path) -> None:
    """Draw the curves of a section."""
    if name == "corpus":
        _corpus(section, folder)
    else:
        for curve, points in section.items():
            _curve(curve, points, folder)


def _curve(name: str, points: dict[str, Measured], folder: Path) -> None:
    """Draw tokens a second of everybody, each with its fastest way."""
    across, up, unit = AXES[name]
    series: dict[str, dict[float, float]] = {}
    for x, point in points.items():
        for measurement in point["measurements"]:
            fastest = series.setdefault(toolkit(measurement), {})
            rate = measurement["per_second"][unit]
            fastest[float(x)] = max(fastest.get(float(x), 0.0), rate)
    figure, axes = plt.subplots(figsize=(5.5, 3.4))
    for who, values in series.items():
        line = "o-" if who == "heedful" else "o--"
        label = who if who == "heedful" else f"{who}, the fastest of its ways"
        axes.plot([*values], [*values.values()], line, color=HUES.get(who), label=label, ms=3)
    axes.set_xscale("log", base=2)
    ticks = [float(x) for x in points]
    axes.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    _save(figure, axes, f"speed-{name}", folder, across, up)


def _corpus(section: Measured, folder: Path) -> None:
    """Draw the cost of a pair and of a token."""
    figure, axes = plt.subplots(figsize=(5.5, 3.4))
    rows = {int(size): row for size, row in section["sizes"].items()}
    sizes = sorted(rows)
    prepare = [1e6 * rows[size]["prepare_seconds"] / size for size in sizes]
    train = [1e6 * rows[size]["train_seconds"] / rows[size]["target_tokens"] for size in sizes]
    axes.plot(sizes, prepare, "o--", color="#4c6085", label="a pair to prepare", markersize=3)
    axes.plot(sizes, train, "o-", color="#0b6e4f", label="a target token to train", markersize=3)
    axes.set_xscale("log")
    _save(figure, axes, "speed-corpus", folder, "pairs", "microseconds")


def _save(figure: Any, axes: Any, name: str, folder: Path, across: str, up: str) -> None:
    """Label, write and close."""
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(folder.parent / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
