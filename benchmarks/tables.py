"""
The paper's tables and claims, made by `heedful paper` for the pages of results.

    python -m benchmarks.tables table1 | table2 | table3 | table3-long | claims [--system NAME ...]
    python -m benchmarks.tables table2 | table3 --count

Writes `docs/results/NAME.json`, and builds the pictures and the page from it. Table 2 and Table 3
use models trained on Multi30k English-German, raw; claims use models trained on the grammar corpus.
If the JSON exists, its plan is repeated step by step; models that already exist in the folder are
not trained again.
Table 2 includes ensembles of three seeds. `table3-long` trains the base row and rows (A) and (C)
for four times the steps that are recorded for Table 3.

`--system` trains only the named systems, seeds or rows, or decides only the named claims. Other
results of the JSON are kept. Named claims share the whole time budget. If an ensemble is named, its
seeds must be named, too. `--replan` makes a new plan even if the JSON exists, within `--budget` if
it is given. With `--plan-only` it only plans Table 2, from the recorded speeds; later calls with
`--system` then train one system after the other. `--runs` names the folder of models; use a new
folder for other systems. `--count` counts the operations of a record again from its plan, without
training.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.corpora import multi30k
from benchmarks.operations import count_again
from benchmarks.report import RESULTS, arguments, measurements_of, read
from benchmarks.table3_long import ROWS as LONG_ROWS
from benchmarks.table3_long import lengthen, long_table
from benchmarks.table_pages import OF_TABLE2, PAGE
from heedful.errors import SettingError
from heedful.experiments.corpus import grammar_corpus
from heedful.experiments.measured import MeasuredSystem
from heedful.experiments.plan import RATES, Plan, describe, make_plan, write_rates
from heedful.experiments.record import Record
from heedful.experiments.report import all_differences, plain
from heedful.experiments.system import TableSystem
from heedful.paper.claims.check import (
    check_claims,
    draw,
    to_dict,
)
from heedful.paper.claims.table import CLAIMS
from heedful.paper.table1 import make_table1
from heedful.paper.table2 import Table2, make_table2, table2_task
from heedful.paper.table3 import SYSTEMS as ROWS
from heedful.paper.table3 import Table3, train_rows
from heedful.settings.durations import parse_duration

_THREADS = 1
Measurements = dict[str, Any]


class Call(NamedTuple):
    """The options of one call, and the earlier record."""

    out: Path
    budget: float
    """Time budget in seconds."""
    names: list[str]
    """Names of systems, rows or claims; all if empty."""
    replan: bool
    record: Record | None
    """The record of earlier calls."""

    @property
    def earlier(self) -> Measurements:
        """The measurements of the record."""
        return {} if self.record is None else self.record.measurements

    @property
    def plan(self) -> Measurements | None:
        """The recorded plan of all systems; None if there is no plan or a new plan is requested."""
        return None if self.replan else self.earlier.get("plan")


def main() -> None:
    """Make or continue one table, and write the page."""
    parser = arguments(__doc__, "tables")
    parser.add_argument("what", choices=_MAKERS)
    parser.add_argument("--system", action="append", default=[], metavar="NAME")
    parser.add_argument("--replan", action="store_true")
    parser.add_argument("--budget", type=_time, metavar="TIME")
    parser.add_argument("--plan-only", action="store_true")
    parser.add_argument("--count", action="store_true")
    options = parser.parse_args()
    what, record, out = options.what, read(options.what), options.runs / options.what
    _check(parser, options, record is not None)
    if options.count and record is not None:
        counted = _count(what, record.measurements, options.commit)
        replace(record, measurements=counted).write(RESULTS / f"{what}.json")
        PAGE.write()
        return
    if options.replan and out.exists():
        parser.error(f"--replan needs a folder without earlier training runs, but {out} is there")
    begun = out / "commit"
    if begun.exists() and begun.read_text(encoding="utf-8") != options.commit:
        parser.error(f"{out} was begun at another commit; name a new folder in --runs")
    out.mkdir(parents=True, exist_ok=True)
    begun.write_text(options.commit, encoding="utf-8")
    make, budget = _MAKERS[what]
    if options.plan_only:
        make = _plan_table2
    measurements = make(Call(out, options.budget or budget, options.system, options.replan, record))
    outputs = {} if record is None else record.outputs
    for file in sorted(out.rglob(f"output/{_OUTPUTS.get(what, '*')}.txt")):
        name = file.relative_to(out).with_suffix("").as_posix()
        outputs[name] = file.read_text(encoding="utf-8").splitlines()
    commands = [f"python -m benchmarks.tables {what}"]
    PAGE.keep(what, measurements, options.commit, commands=commands, outputs=outputs)


def _time(text: str) -> float:
    """Parse a duration, and return it in seconds."""
    try:
        return parse_duration(text, "--budget")
    except SettingError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace, has_record: bool) -> None:
    """End with a message if the options are incompatible."""
    what, chosen = options.what, bool(options.system)
    refusals = {
        "--system is for table2, table3, table3-long and claims": chosen and what == "table1",
        "--system needs the JSON of the other systems": chosen
        and what != "table3-long"
        and not has_record,
        "table3-long needs the JSON of table3": what == "table3-long"
        and not (RESULTS / "table3.json").exists(),
        "--replan is for all that has a plan of its own": options.replan
        and (what in ("table1", "table3-long") or chosen),
        f"--system must be one of {', '.join(_NAMES.get(what, ()))}": chosen
        and not {*options.system} <= {*_NAMES.get(what, options.system)},
        "--budget is for --replan; a plan has its own": options.budget and not options.replan,
        "--plan-only is for table2, with --replan": options.plan_only
        and (what != "table2" or not options.replan or not has_record),
        f"--count needs a record of {', '.join(_COUNTED)}, and counts all of it": options.count
        and (what not in _COUNTED or not has_record or chosen or options.replan),
    }
    for message, is_refused in refusals.items():
        if is_refused:
            parser.error(message)


def _table1(call: Call) -> Measurements:
    """Count and time layers."""
    table = make_table1(call.out, call.budget, threads=_THREADS, say=print)
    table.draw(RESULTS / "table1.svg")
    numbers = table.to_dict()
    return {
        "counts": table.count_rows,
        "times": table.time_rows,
        "rounds": len(numbers["rounds"]),
        **{name: numbers[name] for name in ("threads", "layers", "crossings")},
    }


def _table2(call: Call) -> Measurements:
    """Train scaled-down systems of Table 2, and add them to the systems of earlier calls."""
    table = make_table2(
        *(multi30k(call.out.parent), call.out, call.budget),
        names=call.names,
        known=OF_TABLE2,
        plan=_write_plan(call.out, call.plan, call.names),
        threads=_THREADS,
        say=print,
    )
    measurements: Measurements = {
        "here": plain(table.systems),
        "text": table.text,
        "differences": [asdict(pair) for pair in table.differences],
        "plan": call.plan or _read_json(call.out / "plan.json"),
    }
    if call.names and call.record is not None:
        recorded = _with_outputs(call.record)
        measurements = _merge(
            measurements, recorded, call.names, [system.name for system in OF_TABLE2]
        )
        measured = [MeasuredSystem.of(system) for system in measurements["here"]]
        _write_outputs(call.record, call.out)
        differences = all_differences(measured, multi30k(call.out.parent), call.out)
        measurements["differences"] = [asdict(pair) for pair in differences]
    systems = tuple(map(MeasuredSystem.of, measurements["here"]))
    Table2(systems, (), measurements["text"]).draw(RESULTS / "table2.svg")
    return measurements


def _with_outputs(record: Record) -> Record:
    """Leave out systems of earlier plans, because the record lacks their translations."""
    here = [
        system
        for system in record.measurements["here"]
        if f"output/{system['name']}.test" in record.outputs
    ]
    measurements = record.measurements | {"here": here}
    if not here:
        measurements.pop("counted", None)  # it belongs to systems that are left out
    return replace(record, measurements=measurements)


def _plan_table2(call: Call) -> Measurements:
    """Plan all systems of Table 2 with the recorded rates, without training."""
    corpus = multi30k(call.out.parent)
    rates = {
        system["name"]: system["tokens_per_second"] for system in call.earlier["plan"]["systems"]
    }
    write_rates(call.out / RATES, rates, _THREADS)
    task = table2_task(corpus, call.out, OF_TABLE2)
    plan = make_plan(task, call.budget, _THREADS, print)
    titles = [system["title"] for system in call.earlier["here"]]
    assert call.record is not None  # `_check` requires a record
    return call.earlier | {"plan": asdict(plan)} | _origins(call.record, titles)


def _write_outputs(record: Record, out: Path) -> None:
    """Write the translations of earlier calls, to compare them with translations of this call."""
    for name, lines in record.outputs.items():
        file = out / f"{name}.txt"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _table3(call: Call) -> Measurements:
    """Train rows of Table 3, and add them to the rows of earlier calls."""
    measurements = _train_rows(call, ROWS, call.plan)
    table = Table3(tuple(map(MeasuredSystem.of, measurements["here"])), measurements["text"])
    table.draw(RESULTS / "table3.svg")
    return measurements


def _table3_long(call: Call) -> Measurements:
    """Train rows of Table 3 longer, and add them to the rows of earlier calls."""
    plan = call.plan or lengthen(measurements_of("table3")["plan"])
    measurements = _train_rows(call, LONG_ROWS, plan)
    table = long_table(measurements["here"], measurements["text"])
    if len(table.seeds) > 1:
        table.draw(RESULTS / "table3-long.svg")
    return measurements


def _train_rows(call: Call, rows: Sequence[TableSystem], plan: Measurements | None) -> Measurements:
    """Train the named rows, or all, and merge them with the rows of earlier calls."""
    text, order = multi30k(call.out.parent), [row.name for row in rows]
    names = call.names or order
    measured = train_rows(
        *(text, call.out, call.budget),
        names=names,
        plan=_write_plan(call.out, plan, names),
        threads=_THREADS,
        say=print,
    )
    measurements: Measurements = {"here": plain(measured), "text": describe(text)}
    measurements["plan"] = plan or _read_json(call.out / "plan.json")
    if call.names and call.record is not None:
        measurements = _merge(measurements, call.record, names, order)
    return measurements


def _count(name: str, earlier: Measurements, commit: str) -> Measurements:
    """Count the operations of a record's training runs again from its plan, without training."""
    measured = tuple(map(MeasuredSystem.of, earlier["here"]))
    with TemporaryDirectory() as scratch:
        out = Path(scratch)
        plan = _write_plan(out, earlier["plan"], ())
        assert plan is not None
        counted = count_again(measured, Plan.read(plan), _COUNTED[name], multi30k(out), out)
    for before, after in zip(measured, counted, strict=True):
        print(f"{after.title}: {after.flops:.3e} operations, {before.flops:.3e} before")
    if name == "table2":
        Table2(tuple(counted), (), earlier["text"]).draw(RESULTS / "table2.svg")
    return earlier | {"here": plain(counted), "counted": commit}


def _merge(
    measurements: Measurements, record: Record, names: Sequence[str], order: Sequence[str]
) -> Measurements:
    """Merge the systems `names` with the other systems of an earlier record, in a given order."""
    earlier = record.measurements
    others = [system for system in earlier["here"] if system["name"] not in names]
    here = sorted([*measurements["here"], *others], key=lambda system: order.index(system["name"]))
    origins = _origins(record, [system["title"] for system in others])
    counted = {"counted": earlier["counted"]} if "counted" in earlier else {}
    return measurements | {"here": here, **counted, **origins}


def _origins(record: Record, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Name the commit and machine of each part that is kept from an earlier record."""
    names, known = [*names], record.measurements
    return {
        "commits": {name: known.get("commits", {}).get(name, record.commit) for name in names},
        "machines": {name: known.get("machines", {}).get(name, record.machine) for name in names},
    }


def _claims(call: Call) -> Measurements:
    """Decide claims with models of the built-in grammar; add them to the recorded claims."""
    earlier, plans = call.earlier.get("claims", {}), call.earlier.get("plans", {})
    checks = check_claims(
        call.names or [*CLAIMS],
        call.out,
        lambda: grammar_corpus(call.out / "text"),
        call.budget,
        plan=None if call.replan or not plans else _write_plans(call.out / "earlier", plans),
        threads=_THREADS,
        say=print,
    )
    for name, checked in checks.items():
        picture = RESULTS / "claims" / f"{name}.svg"
        picture.parent.mkdir(exist_ok=True)
        draw(CLAIMS[name].statement, checked, picture)
    decided = earlier | to_dict(checks)
    files = {name: call.out / name / "plan.json" for name in checks}
    new_plans = {name: _read_json(file) for name, file in files.items() if file.exists()}
    stays = [name for name in earlier if name not in checks and name in CLAIMS]
    return {
        "claims": {name: decided[name] for name in CLAIMS if name in decided},
        "plans": {name: plan for name, plan in plans.items() if name in CLAIMS} | new_plans,
        **(_origins(call.record, stays) if call.record is not None else {}),
    }


def _write_plans(folder: Path, plans: Mapping[str, Measurements]) -> Path:
    """Write the plans of claims, to repeat their training runs."""
    for name, plan in plans.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    return folder


_MAKERS: dict[str, tuple[Callable[[Call], Measurements], float]] = {
    "table1": (_table1, 180.0),
    "table2": (_table2, 9_000.0),
    "table3": (_table3, 10_800.0),
    "table3-long": (_table3_long, 43_200.0),
    "claims": (_claims, 3_600.0),
}
"""For each table, the function that makes the table, and its default budget in seconds."""


_OUTPUTS = {"table3": "*.valid", "table3-long": "*.valid", "claims": "*.test"}
"""The translations that a record keeps, from which its intervals can be computed again."""


_COUNTED: dict[str, Sequence[TableSystem]] = {"table2": OF_TABLE2, "table3": ROWS}
"""Systems of the records whose operations can be counted again."""


_NAMES: dict[str, list[str]] = {
    **{
        what: [row.name for row in rows]
        for what, rows in (("table2", OF_TABLE2), ("table3", ROWS), ("table3-long", LONG_ROWS))
    },
    "claims": [*CLAIMS],
}
"""What `--system` may name."""


def _write_plan(out: Path, plan: Measurements | None, names: Sequence[str]) -> Path | None:
    """Write a plan, or its part for `names`, so that its run can be repeated."""
    if plan is None:
        return None
    out.mkdir(parents=True, exist_ok=True)
    file = out / "earlier.json"
    chosen = [system for system in plan["systems"] if not names or system["name"] in names]
    file.write_text(json.dumps(plan | {"systems": chosen}), encoding="utf-8")
    return file


def _read_json(file: Path) -> Measurements:
    plain_values: Measurements = json.loads(file.read_text(encoding="utf-8"))
    return plain_values


if __name__ == "__main__":
    main()
