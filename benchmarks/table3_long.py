"""The base row and rows (A) and (C) of Table 3, trained for four times as many steps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.report import read
from heedful.experiments.estimate import Noise, rank_correlation
from heedful.experiments.measured import MeasuredSystem
from heedful.experiments.page import Rows, markdown
from heedful.experiments.record import Record
from heedful.kernels.api import resolve_precision
from heedful.machine.devices import resolve_device
from heedful.paper.table3 import SYSTEMS, PublishedRow, Table3
from heedful.visualise.published import PublishedPanel, PublishedPoint, draw_published
from heedful.visualise.report_page import ReportPage

TIMES = 4
ROWS = tuple(row for row in SYSTEMS if row.name == "base" or row.name.startswith(("a-", "c-")))
_STRETCHED = ("train.steps", "train.warmup", "train.validate_steps", "train.checkpoint_steps")


def lengthen(plan: dict[str, Any]) -> dict[str, Any]:
    """Multiply the steps in a plan of Table 3, stretch the schedules, and set the precision."""
    names = [row.name for row in ROWS]
    precision = f"train.precision={resolve_precision('auto', resolve_device('cpu'))}"
    systems = [
        system
        | {
            "steps": TIMES * system["steps"],
            "settings": [*map(_stretch, system["settings"]), precision],
        }
        for system in plan["systems"]
        if system["name"] in names
    ]
    return plan | {"systems": systems, "budget": TIMES * plan["budget"]}


def _stretch(setting: str) -> str:
    """Multiply the value of a setting that counts steps."""
    key, value = setting.split("=")
    return f"{key}={TIMES * int(value)}" if key in _STRETCHED else setting


@dataclass(frozen=True)
class LongRows:
    """Rows after the longer trainings, next to the same rows of Table 3."""

    systems: Sequence[MeasuredSystem]
    """The base row, and some or all of the other `ROWS`."""
    table: Table3
    """The shorter trainings. Their seeds show how much trainings of one model differ."""

    @cached_property
    def pairs(self) -> list[tuple[PublishedRow, MeasuredSystem, MeasuredSystem]]:
        """The published row, the shorter and the longer training of each row."""
        by_name = {system.name: system for system in self.systems}
        return [
            (row, shorter, by_name[row.name])
            for row, shorter in self.table.pairs
            if row.name in by_name
        ]

    @property
    def noises(self) -> list[Noise]:
        """The noise of perplexity and BLEU, with the longer base row as the mean."""
        _, _, base = self.pairs[0]
        return [
            noise._replace(mean=value(base))
            for noise, value in zip(self.table.noises, VALUES, strict=True)
        ]

    @property
    def rows(self) -> Rows:
        """The table; a star marks numbers farther from the base row than other seeds would be."""
        steps = [f"{self.pairs[0][which].steps:,}" for which in (1, 2)]
        heads = (f"{name}, {count} steps" for name in _NAMES for count in steps)
        rows: Rows = [("row", *heads)]
        for row, *trainings in self.pairs:
            cells = []
            for value, noise in zip(VALUES, self.noises, strict=True):
                shorter, longer = map(value, trainings)
                cells += [f"{shorter:.1f}", f"{longer:.1f}{'*' if noise.exceeds(longer) else ''}"]
            rows.append((row.title, *cells))
        return rows

    @property
    def verdict(self) -> str:
        """A summary in one paragraph."""
        margins = [noise.margin for noise in self.noises]
        correlations = [
            " and ".join(
                f"{correlation:+.2f}" if correlation is not None else "none"
                for correlation in (self._correlation(index, which) for which in (1, 2))
            )
            for index in range(len(VALUES))
        ]
        return (
            f"A star marks a number that differs from the base row by more than {margins[0]:.1f} "
            f"in perplexity or {margins[1]:.1f} in BLEU. These margins come from the "
            f"{len(self.table.seeds)} shorter trainings of the base row. Rank correlation with the "
            f"{len(self.pairs)} published rows, after the shorter and the longer trainings: "
            f"{correlations[0]} for perplexity, {correlations[1]} for BLEU."
        )

    def draw(self, out: Path) -> None:
        """Plot measured against published perplexity and BLEU."""
        panels = [
            PublishedPanel(
                name,
                tuple(
                    PublishedPoint(row.name, getattr(row, name.lower()), value(longer))
                    for row, _, longer in self.pairs
                ),
                (noise.mean - noise.margin, noise.mean + noise.margin),
            )
            for name, value, noise in zip(_NAMES, VALUES, self.noises, strict=True)
        ]
        explanation = (
            "Each point is a row of the table; the band is the range that other seeds of the base "
            "row would reach, with the margins of the shorter trainings."
        )
        sheet = ReportPage("Table 3 after longer trainings", explanation, self.rows)
        draw_published(panels, out, sheet)

    def _correlation(self, index: int, which: int) -> float | None:
        """Correlate a number of the shorter (1) or longer (2) trainings with the published one."""
        published = [getattr(row, _NAMES[index].lower()) for row, *_ in self.pairs]
        return rank_correlation(published, [VALUES[index](pair[which]) for pair in self.pairs])


def long_rows(measured: Sequence[dict[str, Any]]) -> LongRows:
    """Read the longer trainings, and add the record of Table 3."""
    record = read("table3")
    assert record is not None  # the longer trainings are planned from it
    shorter = tuple(map(MeasuredSystem.of, record.measurements["here"]))
    table = Table3(shorter, record.measurements["text"])
    return LongRows([MeasuredSystem.of(system) for system in measured], table)


def body(record: Record) -> str:
    """Lay out the longer trainings."""
    long = long_rows(record.measurements["here"])
    trained = {row.name for row, *_ in long.pairs}
    missing = [row.title for row in ROWS if row.name not in trained]
    parts = [
        "### Rows (A) and (C) after longer trainings",
        f"The base row and rows (A) and (C) are trained again for {TIMES} times as many steps. "
        f"Warm-up and decay of the learning rate are also {TIMES} times as long.",
        markdown(long.rows),
        "![Published and measured perplexity and BLEU](table3-long.svg)",
        long.verdict,
    ]
    return "\n\n".join([*parts, *([f"Not trained: {'; '.join(missing)}."] if missing else [])])


def _perplexity(system: MeasuredSystem) -> float:
    assert system.perplexity is not None  # it is not an ensemble
    return system.perplexity


def _bleu(system: MeasuredSystem) -> float:
    return system.valid_bleu


_NAMES = ("perplexity", "BLEU")
VALUES: tuple[Callable[[MeasuredSystem], float], ...] = (_perplexity, _bleu)
