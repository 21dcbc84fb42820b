"""A statement, and what a measurement said of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from heedful.paper.tables import Rows
from heedful.visualise.size_curves import SizeCurve, SizePanel


@dataclass(frozen=True)
class Checked:
    """What was measured."""

    holds: bool
    sentence: str
    """What decided, with its numbers."""
    panel: SizePanel
    """The numbers."""

    @property
    def rows(self) -> Rows:
        """The numbers as a table: a row for each size."""
        head = (self.panel.axis, *(curve.name for curve in self.panel.curves))
        rows: Rows = [head]
        for index, size in enumerate(self.panel.sizes):
            values = (curve.values[index] for curve in self.panel.curves)
            rows.append((f"{size:,}", *(f"{value:.3g}" for value in values)))
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values."""
        return {
            "holds": self.holds,
            "sentence": self.sentence,
            "axis": self.panel.axis,
            "sizes": list(self.panel.sizes),
            "label": self.panel.label,
            "curves": {curve.name: list(curve.values) for curve in self.panel.curves},
        }

    @classmethod
    def of(cls, plain: dict[str, Any]) -> "Checked":
        """Read it from JSON's values."""
        curves = tuple(SizeCurve(name, tuple(values)) for name, values in plain["curves"].items())
        panel = SizePanel(plain["axis"], tuple(plain["sizes"]), curves, plain["label"])
        return cls(plain["holds"], plain["sentence"], panel)


class Statement(NamedTuple):
    """A statement and how to decide it."""

    name: str
    said: str
    source: str
    """Who says so."""
    check: Callable[[], Checked]
