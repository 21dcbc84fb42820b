"""The base row and rows (A) and (C) of Table 3, trained for four times as many steps."""

from collections.abc import Sequence
from typing import Any

from benchmarks.report import read
from heedful.experiments.measured import MeasuredSystem
from heedful.experiments.page import fold, markdown
from heedful.experiments.record import Record
from heedful.kernels.api import resolve_precision
from heedful.machine.devices import resolve_device
from heedful.paper.table3 import PICTURE_NOTE, SYSTEMS, Table3

TIMES = 4
ROWS = tuple(row for row in SYSTEMS if row.name.startswith(("base", "a-", "c-")))
_STRETCHED = ("train.steps", "train.warmup", "train.validate_steps", "train.checkpoint_steps")
_PRECISION = "train.precision="


def lengthen(plan: dict[str, Any]) -> dict[str, Any]:
    """Multiply the steps in a plan of Table 3, stretch the schedules, and fix the precision."""
    names = [row.name for row in ROWS]
    systems = [
        system
        | {"steps": TIMES * system["steps"], "settings": _stretch_settings(system["settings"])}
        for system in plan["systems"]
        if system["name"] in names
    ]
    return plan | {"systems": systems, "budget": TIMES * plan["budget"]}


def _stretch_settings(settings: Sequence[str]) -> list[str]:
    """Multiply the values of settings that count steps; add the precision if there is none."""
    stretched = []
    for setting in settings:
        key, value = setting.split("=")
        stretched.append(f"{key}={TIMES * int(value)}" if key in _STRETCHED else setting)
    if not any(setting.startswith(_PRECISION) for setting in settings):
        # plans of earlier commits leave it to the machine, which may change between training runs
        stretched.append(f"{_PRECISION}{resolve_precision('auto', resolve_device('cpu'))}")
    return stretched


def long_table(measured: Sequence[dict[str, Any]], text: str) -> Table3:
    """Build the table of the longer training runs."""
    return Table3(tuple(map(MeasuredSystem.of, measured)), text, planned=ROWS)


def recorded_table() -> Table3:
    """Read the recorded table of the longer training runs."""
    record = read("table3-long")
    assert record is not None  # other benchmarks compare with its base row
    return long_table(record.measurements["here"], record.measurements["text"])


def _compare_order(record: Record) -> str:
    """Compare the order of the rows with their order in the shorter training runs."""
    names = {row["name"] for row in record.measurements["here"]}
    shorter = [row for row in read("table3").measurements["here"] if row["name"] in names]
    perplexity, bleu = long_table(shorter, record.measurements["text"]).correlations
    return (
        "At a quarter of the steps, when rows that learn fast are ahead, the correlations of the "
        f"same rows are {perplexity:+.2f} and {bleu:+.2f}."
    )


def body(record: Record, origins: Sequence[str]) -> str:
    """Lay out the longer training runs. `origins`: commits and machines of earlier rows."""
    table = long_table(record.measurements["here"], record.measurements["text"])
    settings = record.measurements["plan"]["systems"][0]["settings"]
    (precision,) = (line for line in settings if line.startswith(_PRECISION))
    return "\n\n".join(
        [
            "### Rows (A) and (C) after longer trainings",
            "The base row and rows (A) and (C) are trained again for four times as many steps, "
            f"{table.seeds[0].steps:,}. Warm-up and decay of the learning rate also take four "
            f"times as many steps. The precision is {precision.removeprefix(_PRECISION)}.",
            markdown(table.rows),
            "![Published and measured perplexity and BLEU](table3-long.svg)",
            PICTURE_NOTE,
            f"{table.verdict} {_compare_order(record)}",
            fold("All longer trainings", [*table.conclusions, markdown(table.details), *origins]),
        ]
    )
