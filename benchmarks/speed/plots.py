"""Pictures of curves for the page."""

from pathlib import Path

from benchmarks.speed.comparisons import Measured, toolkit
from heedful.visualise.report_page import ReportPage
from heedful.visualise.size_curves import SizeCurve, SizePanel, draw_size_curves

AXES = {
    "batch": ("tokens a side of a step", "trained tokens/s"),
    "length": ("mean tokens of a sentence", "trained tokens/s"),
    "vocabulary": ("symbols", "trained tokens/s"),
    "search": ("sentences of a batch", "translated tokens/s, beam 4"),
    "corpus": ("pairs", "microseconds"),
}


def pictures(name: str, section: Measured, page: str) -> list[str]:
    """List the pictures of a section's curves for the page with this name."""
    curves = [name] if name == "corpus" else section
    return [f"![{AXES[curve][1]} by {AXES[curve][0]}]({page}-{curve}.svg)" for curve in curves]


def draw(name: str, section: Measured, folder: Path) -> None:
    """Draw the curves of a section."""
    curves = {name: section["sizes"]} if name == "corpus" else section
    for curve, points in curves.items():
        across, up = AXES[curve]
        lines = (_costs if curve == "corpus" else _rates)(points)
        panel = SizePanel(across, tuple(map(int, points)), lines, up, "x")
        sheet = ReportPage(f"{up} by {across}", "", ())
        draw_size_curves([panel], folder.parent / f"{folder.name}-{curve}.svg", sheet)


def _rates(points: Measured) -> tuple[SizeCurve, ...]:
    """Read the tokens per second of each toolkit in its fastest variant."""
    series: dict[str, dict[str, float]] = {}
    for x, point in points.items():
        for measurement in point["measurements"]:
            fastest = series.setdefault(toolkit(measurement), dict.fromkeys(points, 0.0))
            fastest[x] = max(fastest[x], measurement["per_second"]["tokens"])
    return tuple(SizeCurve(who, tuple(values.values())) for who, values in series.items())


def _costs(sizes: Measured) -> tuple[SizeCurve, ...]:
    """Compute the cost of preparing a pair and of training on a token."""
    rows = sizes.items()
    prepare = tuple(1e6 * row["prepare_seconds"] / int(size) for size, row in rows)
    train = tuple(1e6 * row["train_seconds"] / row["target_tokens"] for _, row in rows)
    return SizeCurve("a pair to prepare", prepare), SizeCurve("a target token to train", train)
