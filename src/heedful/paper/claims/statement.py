"""The statement of a claim, and the verdict of its measurement."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, get_args

from heedful.experiments.corpus import TableCorpus
from heedful.experiments.estimate import Estimate, with_margin
from heedful.experiments.page import Rows, capital
from heedful.experiments.system import TableSystem
from heedful.paper.claims.trainings import Trainings
from heedful.visualise.size_curves import SizeCurve, SizePanel, Steps

_MOST_WRITTEN_OUT = 1e6


@dataclass(frozen=True)
class Checked:
    """A verdict, with its evidence and numbers."""

    holds: bool | None
    """Whether the claim holds; None if the measurement cannot decide."""
    headline: str
    """The number that decides, in a sentence."""
    sentence: str
    """The evidence for the verdict, with its numbers."""
    panels: tuple[SizePanel, ...]
    """The numbers as curves."""

    @property
    def tables(self) -> list[tuple[str, Rows]]:
        """For each panel, a title and the table of its numbers, with a row for each size."""
        return [(capital(panel.label), _rows(panel)) for panel in self.panels]

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        panels = [
            {
                "axis": panel.axis,
                "sizes": list(panel.sizes),
                "label": panel.label,
                "logarithmic": panel.logarithmic,
                **({"allowed": panel.allowed} if panel.allowed else {}),
                "curves": {curve.name: list(curve.values) for curve in panel.curves},
                "margins": {line.name: list(line.margins) for line in panel.curves if line.margins},
                "repeats": {line.name: list(line.repeats) for line in panel.curves if line.repeats},
            }
            for panel in self.panels
        ]
        return {
            "holds": self.holds,
            "headline": self.headline,
            "sentence": self.sentence,
            "panels": panels,
        }

    @property
    def verdict(self) -> str:
        """The verdict as a sentence."""
        verdicts = {None: "Not decided.", True: "It holds.", False: "It does not hold here."}
        return verdicts[self.holds]

    @classmethod
    def of(cls, plain: dict[str, Any]) -> "Checked":
        """Read a verdict; wrong JSON values raise `ValueError`, `TypeError` or `KeyError`."""
        holds, sentence = plain["holds"], plain["sentence"]
        if not (holds is None or isinstance(holds, bool)):
            raise ValueError(f"`holds` is {holds!r}")
        first = str(sentence).partition(". ")[0].removesuffix(".")
        headline = plain.get("headline", f"{first}.")  # older files have none
        if not (isinstance(headline, str) and isinstance(sentence, str)):
            raise TypeError(f"`headline` is {headline!r}, and `sentence` is {sentence!r}")
        panels = tuple(map(_panel, plain["panels"]))
        if not panels:
            raise ValueError("it has no numbers")
        return cls(holds, headline, sentence, panels)


Evidence = bool | None
"""True if a result supports the statement, False if the result contradicts it, None otherwise."""


class Measured(NamedTuple):
    """The evidence of a measurement, with its numbers."""

    evidence: Sequence[Evidence]
    headlines: Sequence[str]
    """For each piece of evidence, its number in a sentence."""
    sentence: str
    """The numbers in words."""
    panels: tuple[SizePanel, ...]


def mean_curve(name: str, repeats: Sequence[Sequence[float]]) -> SizeCurve:
    """Average the repeats of each size, with 95% margins."""
    estimates = [Estimate.of(values) for values in repeats]
    return SizeCurve(
        name,
        tuple(estimate.value for estimate in estimates),
        tuple(estimate.margin for estimate in estimates),
        tuple(map(tuple, repeats)),
    )


def every(evidence: Sequence[Evidence]) -> int:
    """
    Find the evidence that decides a statement that all evidence must support.

    It is the first that contradicts the statement, else the first undecided, else the first.
    """
    return min(range(len(evidence)), key=lambda place: (False, None, True).index(evidence[place]))


def between(evidence: Sequence[Evidence]) -> int:
    """
    Find which of two pieces of evidence decides; the first is stricter, the second is milder.

    The second decides if it contradicts the statement and the first does not support the statement.
    """
    stricter, milder = evidence
    return 1 if milder is False and not stricter else 0


def say_times(logarithm: Estimate, unit: str) -> str:
    """Format a ratio and its interval, given the estimate of its logarithm."""
    low, high = map(math.exp, logarithm.interval)
    return f"{math.exp(logarithm.value):.1f} times {unit} ({low:.1f} to {high:.1f})"


def sign(interval: tuple[float, float]) -> Evidence:
    """Return True if the whole interval is above zero, False if it is below zero, else None."""
    low, high = interval
    return True if low > 0 else False if high < 0 else None


class PaperClaim(NamedTuple):
    """A statement, what is measured, and the rule by which the measurement decides."""

    name: str
    statement: str
    source: str
    """The place in the paper or in a text where the statement is made."""
    measure: Callable[..., Measured]
    """The measurement; it takes the `Trainings` of the `systems` if there are any."""
    systems: tuple[TableSystem, ...] = ()
    """Models to train."""
    rule: Callable[[Sequence[Evidence]], int] = every
    """Function that returns the index of the evidence that decides."""
    note: str = ""
    """Notes on the models."""
    must_learn: tuple[str, ...] = ()
    """Models that must learn to translate before the claim is decided; if empty, the best model."""
    may_learn_nothing: tuple[str, ...] = ()
    """Models that, according to the statement, learn nothing useful."""
    decided_by_bleu: bool = False
    """Whether the claim stays undecided if all models make hardly any errors."""
    weight: int = 1
    """Factor by which the claim's models train longer than the models of a claim of weight 1."""
    validations: int | None = None
    """Maximum number of validations for each model; None for the default maximum."""
    text: Callable[[TableCorpus, Path], TableCorpus] | None = None
    """Function that makes the models' text from a corpus and writes the text to a folder."""

    @property
    def cost(self) -> int:
        """The training cost of the claim; each model of a claim of weight 1 costs 1."""
        return self.weight * len(self.systems)

    def check(self, *trained: Trainings) -> Checked:
        """Measure, and decide by the claim's rule."""
        evidence, headlines, sentence, panels = self.measure(*trained)
        place = self.rule(evidence)
        text = f"{sentence} {self.note}".strip()
        return Checked(evidence[place], headlines[place], text, panels)


def _panel(plain: dict[str, Any]) -> SizePanel:
    """Read the numbers of one panel from JSON values."""
    axis, label, logarithmic = plain["axis"], plain["label"], plain["logarithmic"]
    sizes, margins = tuple(plain["sizes"]), plain.get("margins", {})
    if not (isinstance(axis, str) and isinstance(label, str)):
        raise TypeError(f"an axis has the name {axis!r} and the label {label!r}")
    if logarithmic not in get_args(Steps):
        raise ValueError(f"`logarithmic` is {logarithmic!r}")
    allowed = plain.get("allowed", 0.0)
    if type(allowed) not in (int, float):
        raise TypeError(f"`allowed` is {allowed!r}")
    if wrong := [size for size in sizes if type(size) is not int]:
        raise TypeError(f"a size along {axis} is {wrong[0]!r}")
    repeats = plain.get("repeats", {})
    if any(len(measured) < 2 for by_size in repeats.values() for measured in by_size):
        raise ValueError(f"a size along {axis} has fewer than two repeats")
    curves = tuple(
        mean_curve(name, repeats[name])
        if name in repeats
        else SizeCurve(name, tuple(values), tuple(margins.get(name, ())))
        for name, values in plain["curves"].items()
    )
    for curve in curves:
        if len(curve.values) != len(sizes) or len(curve.margins) not in (0, len(sizes)):
            raise ValueError(
                f"“{curve.name}” has {len(curve.values)} values and {len(curve.margins)} margins "
                f"for {len(sizes)} sizes"
            )
        numbers = (*curve.values, *curve.margins, *chain(*curve.repeats))
        if wrong := [number for number in numbers if type(number) not in (int, float)]:
            raise TypeError(f"“{curve.name}” has a value {wrong[0]!r}")
    return SizePanel(axis, sizes, curves, label, logarithmic, allowed)


def _rows(panel: SizePanel) -> Rows:
    """Lay out a panel as rows of a table."""
    rows: Rows = [(panel.axis, *(curve.name for curve in panel.curves))]
    for index, size in enumerate(panel.sizes):
        values = (_value(curve, index, panel.label) for curve in panel.curves)
        rows.append((f"{size:,}", *values))
    return rows


def _value(curve: SizeCurve, index: int, label: str) -> str:
    """Format a number: with its margin if it has one, and BLEU with one decimal place."""
    value = curve.values[index]
    if curve.margins:
        return with_margin(value, curve.margins[index])
    return f"{value:.1f}" if "BLEU" in label else _number(value)


def _number(value: float) -> str:
    """Format integers and numbers from 1000 without decimals up to 1e6, else with three digits."""
    if abs(value) < _MOST_WRITTEN_OUT and (abs(value) >= 1000 or value == int(value)):
        return f"{value:,.0f}"
    return f"{value:#.3g}".rstrip(".")
