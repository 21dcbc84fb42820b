"""SVG curves for the page."""

from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt

from benchmarks.speed.goals import Found, toolkit

AXES = {
    "batch": ("tokens a side of a step", "trained tokens/s", "tokens"),
    "length": ("mean tokens of a sentence", "trained tokens/s", "tokens"),
    "vocabulary": ("symbols", "trained tokens/s", "tokens"),
    "search": ("sentences of a batch", "translated tokens/s, beam 4", "tokens"),
}
HUES = {"heedful": "#0b6e4f", "marian": "#c1666b", "ctranslate2": "#4c6085"}


def pictures(name: str, found: Found) -> list[str]:
    """List what the page shows of a section's curves."""
    axes = {"corpus": ("pairs", "microseconds")} if name == "corpus" else AXES
    curves = [name] if name == "corpus" else found
    return [f"![{axes[one][1]} by {axes[one][0]}](speed-{one}.svg)" for one in curves]


def draw(name: str, found: Found, folder: Path) -> None:
    """Draw the curves of a section."""
    if name == "corpus":
        _corpus(found, folder)
    else:
        for curve, points in found.items():
            _curve(curve, points, folder)


def _curve(name: str, points: dict[str, Found], folder: Path) -> None:
    """Draw tokens a second of everybody, of each the fastest way."""
    across, up, unit = AXES[name]
    series: dict[str, dict[float, float]] = {}
    for x, point in points.items():
        for one in point["measurements"]:
            fastest = series.setdefault(toolkit(one), {})
            fastest[float(x)] = max(fastest.get(float(x), 0.0), one["per_second"][unit])
    figure, axes = plt.subplots(figsize=(5.5, 3.4))
    for who, values in series.items():
        line = "o-" if who == "heedful" else "o--"
        label = who if who == "heedful" else f"{who}, the fastest of its ways"
        axes.plot([*values], [*values.values()], line, color=HUES.get(who), label=label, ms=3)
    axes.set_xscale("log", base=2)
    ticks = [float(x) for x in points]
    axes.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    _save(figure, axes, f"speed-{name}", folder, across, up)


def _corpus(found: Found, folder: Path) -> None:
    """Draw the cost of a pair and of a token."""
    figure, axes = plt.subplots(figsize=(5.5, 3.4))
    sizes = sorted(found["sizes"], key=int)
    every = [found["sizes"][size] for size in sizes]
    xs = [int(size) for size in sizes]
    prepare = [1e6 * one["prepare_seconds"] / x for x, one in zip(xs, every, strict=True)]
    train = [1e6 * one["train_seconds"] / one["target_tokens"] for one in every]
    axes.plot(xs, prepare, "o--", color="#4c6085", label="a pair to prepare", markersize=3)
    axes.plot(xs, train, "o-", color="#0b6e4f", label="a target token to train", markersize=3)
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
