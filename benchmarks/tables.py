"""
The paper's tables again, and the claims: what `heedful paper` made for the pages of results.

    python -m benchmarks.tables table1 | table2 | table3 | french | claims [--system NAME ...]
    python -m benchmarks.tables table2 | french | table3 --count

Writes `docs/results/NAME.json`, the pictures and the page from them. Table 2 and Table 3 are
trained on Multi30k English-German, raw; the claims on the embedded grammar. A run whose JSON is
there is made again by the plan in it, step by step; what a folder holds is not made again.
Table 2 has ensembles of three seeds too. `french` trains four of its systems on Tatoeba
English-French.

`--system` trains some systems of Table 2 with their ensembles, or rows of Table 3, or decides some
claims, only, and keeps what the JSON has of the others; these claims then share the whole time.
`--replan` plans anew where there is a JSON, in `--budget` if that is given. `--runs` names the
folder of models, a new one for other systems. `--count` trains nothing: it counts the operations
of a record again, by its plan.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.corpora import VOCABULARY, multi30k, tatoeba
from benchmarks.operations import count_again
from benchmarks.report import RESULTS, ResultPage, arguments, read
from heedful.errors import SettingError
from heedful.experiments.corpus import TableCorpus, grammar_corpus
from heedful.experiments.measured import MeasuredSystem
from heedful.experiments.page import ScoreDifference, folded, markdown
from heedful.experiments.plan import Plan, describe
from heedful.experiments.record import Record
from heedful.experiments.report import plain
from heedful.experiments.system import TableSystem
from heedful.paper.claims.check import (
    RESERVATION,
    check_claims,
    claim_sections,
    draw,
    to_dict,
)
from heedful.paper.claims.statement import Checked
from heedful.paper.claims.table import CLAIMS
from heedful.paper.table1 import make_table1
from heedful.paper.table2 import ENSEMBLES, SYSTEMS, Table2, make_table2
from heedful.paper.table3 import SYSTEMS as ROWS
from heedful.paper.table3 import Table3, train_rows
from heedful.settings.durations import parse_duration

_THREADS = 1
_OF_TABLE2 = (*SYSTEMS, *ENSEMBLES)
_IN_FRENCH = ("gnmt", "convs2s", "moe", "base")
Measurements = dict[str, Any]


class Call(NamedTuple):
    """What one call makes."""

    out: Path
    budget: float
    """In seconds."""
    names: list[str]
    """Systems, rows or claims; all if none."""
    replan: bool
    record: Record | None
    """What was measured before."""

    @property
    def earlier(self) -> Measurements:
        """The measurements of the record."""
        return {} if self.record is None else self.record.measurements

    @property
    def plan(self) -> Measurements | None:
        """The plan of all systems: that of the record, unless it is planned anew."""
        return None if self.replan else self.earlier.get("plan")


def main() -> None:
    """Make one table, or go on with it, and write the page."""
    parser = arguments(__doc__, "tables")
    parser.add_argument("what", choices=_MAKERS)
    parser.add_argument("--system", action="append", default=[], metavar="NAME")
    parser.add_argument("--replan", action="store_true")
    parser.add_argument("--budget", type=_time, metavar="TIME")
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
        parser.error(f"--replan needs a folder without earlier trainings, but {out} is there")
    begun = out / "commit"
    if begun.exists() and begun.read_text(encoding="utf-8") != options.commit:
        parser.error(f"{out} was begun at another commit; name a new folder in --runs")
    out.mkdir(parents=True, exist_ok=True)
    begun.write_text(options.commit, encoding="utf-8")
    make, budget = _MAKERS[what]
    made = make(Call(out, options.budget or budget, options.system, options.replan, record))
    outputs = {} if record is None else record.outputs
    for file in sorted(out.rglob("output/*.txt")):
        name = file.relative_to(out).with_suffix("").as_posix()
        outputs[name] = file.read_text(encoding="utf-8").splitlines()
    commands = [f"python -m benchmarks.tables {what}"]
    PAGE.keep(what, made, options.commit, commands=commands, outputs=outputs)


def _time(text: str) -> float:
    """Read a time in seconds."""
    try:
        return parse_duration(text, "--budget")
    except SettingError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace, has_record: bool) -> None:
    """End with a message if the options do not go together."""
    what, chosen = options.what, bool(options.system)
    refusals = {
        "--system is for table2, table3 and claims": chosen and what in ("table1", "french"),
        "--system needs the JSON of the other systems": chosen and not has_record,
        "--replan is for all that is trained": options.replan and (what == "table1" or chosen),
        "--budget is for --replan; a plan has its own": options.budget and not options.replan,
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
        "count_heading": table.count_heading,
        "counts": table.count_rows,
        "time_heading": table.time_heading,
        "times": table.time_rows,
        "rounds": len(table.times.rounds),
        **{name: numbers[name] for name in ("threads", "layers", "crossings", "conclusions")},
    }


def _table2(call: Call) -> Measurements:
    """Train the siblings of Table 2's systems, and put them beside those of earlier calls."""
    of_them = [system.name for system in ENSEMBLES if system.name.rpartition("-")[0] in call.names]
    again = [*call.names, *of_them]
    made = _train_table2(call, multi30k, call.names, again, ensembles=True)
    if call.names and call.record is not None:  # perhaps only since the beginning
        made = _beside(made, call.record, again, [system.name for system in _OF_TABLE2])
    systems = tuple(map(MeasuredSystem.of, made["here"]))
    Table2(systems, (), made["text"]).draw(RESULTS / "table2.svg")
    return made


def _french(call: Call) -> Measurements:
    """Train the systems of Table 2 that matter most on another pair of languages."""
    return _train_table2(call, tatoeba, _IN_FRENCH)


def _train_table2(
    call: Call,
    unpack: Callable[[Path], TableCorpus],
    names: Sequence[str],
    planned: Sequence[str] = (),
    ensembles: bool = False,
) -> Measurements:
    """Train systems of Table 2 on a text, by a plan of them if there is one."""
    table = make_table2(
        *(unpack(call.out.parent), call.out, call.budget),
        names=names,
        ensembles=ensembles,
        plan=_write_plan(call.out, call.plan, planned),
        threads=_THREADS,
        say=print,
    )
    return {
        "here": plain(table.systems),
        "text": table.text,
        "differences": [asdict(pair) for pair in table.differences],
        "plan": call.plan or _read_json(call.out / "plan.json"),
    }


def _table3(call: Call) -> Measurements:
    """Train the rows of Table 3, and put them beside those of earlier calls."""
    text, plan = multi30k(call.out.parent), call.plan
    measured = train_rows(
        *(text, call.out, call.budget),
        names=call.names,
        plan=_write_plan(call.out, plan, call.names),
        threads=_THREADS,
        say=print,
    )
    made = {"here": plain(measured), "text": describe(text)}
    made["plan"] = plan or _read_json(call.out / "plan.json")
    if call.names and call.record is not None:
        made = _beside(made, call.record, call.names, [row.name for row in ROWS])
    table = Table3(tuple(map(MeasuredSystem.of, made["here"])), made["text"])
    table.draw(RESULTS / "table3.svg")
    return made | table.to_dict()


def _count(name: str, earlier: Measurements, commit: str) -> Measurements:
    """Count the operations of a record's trainings again, by its plan, without training."""
    unpack, systems = _COUNTED[name]
    measured = tuple(map(MeasuredSystem.of, earlier["here"]))
    with TemporaryDirectory() as scratch:
        out = Path(scratch)
        plan = _write_plan(out, earlier["plan"], ())
        assert plan is not None
        counted = count_again(measured, Plan.read(plan), systems, unpack(out), out)
    for before, after in zip(measured, counted, strict=True):
        print(f"{after.title}: {after.flops:.3e} operations, {before.flops:.3e} before")
    if name == "table2":
        Table2(tuple(counted), (), earlier["text"]).draw(RESULTS / "table2.svg")
    return earlier | {"here": plain(counted), "counted": commit}


def _beside(
    made: Measurements, record: Record, names: Sequence[str], order: Sequence[str]
) -> Measurements:
    """Put the systems `names` beside the others of an earlier record, in an order."""
    earlier = record.measurements
    others = [system for system in earlier["here"] if system["name"] not in names]
    here = sorted([*made["here"], *others], key=lambda system: order.index(system["name"]))
    origins = _origins(record, [system["title"] for system in others])
    return earlier | made | {"here": here, **origins}


def _origins(record: Record, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Name commit and machine of each part of an earlier record that stays."""
    names, known = [*names], record.measurements
    return {
        "commits": {name: known.get("commits", {}).get(name, record.commit) for name in names},
        "machines": {name: known.get("machines", {}).get(name, record.machine) for name in names},
    }


def _claims(call: Call) -> Measurements:
    """Decide claims, trained ones on the embedded grammar, and put them beside the others."""
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
        draw(CLAIMS[name].said, checked, picture)
    decided = earlier | to_dict(checks)
    files = {name: call.out / name / "plan.json" for name in checks}
    made = {name: _read_json(file) for name, file in files.items() if file.exists()}
    stays = [name for name in earlier if name not in checks and name in CLAIMS]
    return {
        "claims": {name: decided[name] for name in CLAIMS if name in decided},
        "plans": {name: plan for name, plan in plans.items() if name in CLAIMS} | made,
        **(_origins(call.record, stays) if call.record is not None else {}),
    }


def _write_plans(folder: Path, plans: Mapping[str, Measurements]) -> Path:
    """Write the plans of claims, to make their trainings again."""
    for name, plan in plans.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    return folder


_MAKERS: dict[str, tuple[Callable[[Call], Measurements], float]] = {
    "table1": (_table1, 180.0),
    "table2": (_table2, 9_000.0),
    "table3": (_table3, 10_800.0),
    "claims": (_claims, 3_600.0),
    "french": (_french, 3_600.0),
}
"""What can be made, and its seconds."""


def _counted(record: Record) -> list[str]:
    """Say where operations were counted again."""
    again = "Operations were counted again at commit {}, by the plan, without training."
    measured = record.measurements
    return [again.format(measured["counted"])] if "counted" in measured else []


_COUNTED: dict[str, tuple[Callable[[Path], TableCorpus], Sequence[TableSystem]]] = {
    "table2": (multi30k, _OF_TABLE2),
    "french": (tatoeba, _OF_TABLE2),
    "table3": (multi30k, ROWS),
}
"""Text and systems of the records with curves of operations."""


def _write_plan(out: Path, plan: Measurements | None, names: Sequence[str]) -> Path | None:
    """Write a plan, or the part of it for `names`, to make that run again."""
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


def table1(record: Record) -> str:
    """Lay the costs of layers out."""
    measured = record.measurements
    return "\n\n".join(
        [
            "## Table 1: what a layer costs",
            *(measured["count_heading"], markdown(measured["counts"])),
            *(measured["time_heading"], markdown(measured["times"])),
            "![Time of a layer against length and width](table1.svg)",
            *measured["conclusions"],
        ]
    )


def table2(record: Record) -> str:
    """Lay the siblings of Table 2's systems out."""
    measured, table = record.measurements, _read_table2(record)
    trained = {system["name"] for system in measured["here"]}
    missing = [system.title for system in _OF_TABLE2 if system.name not in trained]
    return "\n\n".join(
        [
            "## Table 2: the systems that the paper is compared with",
            f"Multi30k English-German, raw (29,000 pairs), {VOCABULARY:,} subwords; BLEU, cased, "
            f"on test_2016_flickr, beam 4, the average of the last checkpoints. {_steps(measured)}"
            f". Not trained: {', '.join(missing) or 'none'}. Deep-Att, GNMT and MoE have a rate of "
            "3e-3 and first weights that trials of 300 steps chose, all others a rate of 1.5e-3 "
            "that was not tuned; Deep-Att's perplexity is of words. An ensemble translates with "
            "the mean of three seeds' probabilities, the published ones with that of eight.",
            markdown(table.rows),
            "![Validation BLEU against operations](table2.svg)",
            " ".join(table.reservations),
            *table.matrix,
            folded("The published table", [markdown(table.published_rows)]),
            *_origin(record),
        ]
    )


def french(record: Record) -> str:
    """Lay Table 2's systems on another pair of languages out."""
    measured, table = record.measurements, _read_table2(record)
    return "\n\n".join(
        [
            "## Table 2: English-French",
            "Four of the systems again, with the same settings, on another pair of languages: "
            f"Tatoeba English-French (161,126 pairs of short sentences), {VOCABULARY:,} subwords; "
            f"BLEU, cased, on its test part of 2,001. {_steps(measured)}.",
            markdown(table.rows),
            " ".join(table.reservations),
            *table.matrix,
            *_origin(record),
        ]
    )


def _read_table2(record: Record) -> Table2:
    """Read a Table 2 from its record."""
    measured = record.measurements
    differences = (
        ScoreDifference(**pair | {"interval": tuple(pair["interval"])})
        for pair in measured.get("differences", ())
    )
    systems = tuple(map(MeasuredSystem.of, measured["here"]))
    return Table2(systems, tuple(differences), measured["text"])


def _steps(measured: Measurements) -> str:
    """Say how the steps of trainings that take equally long were planned."""
    plan, minutes = measured["plan"], measured["here"][0]["seconds"] / 60
    return (
        f"The steps are those of a plan of {len(plan['systems'])} trainings in "
        f"{plan['budget'] / 60:.0f} minutes (`--threads 1`), from rates measured one at a time: "
        f"each has {minutes:.1f} minutes"
    )


def table3(record: Record) -> str:
    """Lay the rows of Table 3 out."""
    measured = record.measurements
    table = Table3(tuple(map(MeasuredSystem.of, measured["here"])), measured["text"])
    return "\n\n".join(
        [
            "## Table 3: variations of the Transformer",
            f"Multi30k English-German, raw (29,000 pairs), {VOCABULARY:,} subwords; perplexity by "
            "subword at the last validation, and BLEU, cased, of the average of the last "
            "checkpoints on the validation text, beam 4. The steps are those of a plan of all "
            f"{len(ROWS)} trainings in {measured['plan']['budget'] / 3600:.0f} hours "
            "(`--threads 1`).",
            markdown(table.rows),
            "![Published and measured perplexity and BLEU](table3.svg)",
            table.verdict,
            folded(
                "All trainings",
                [*table.conclusions, markdown(table.details), *_origin(record)],
            ),
        ]
    )


def claims(record: Record) -> str:
    """Lay the claims out."""
    checked = {name: Checked.of(claim) for name, claim in record.measurements["claims"].items()}
    plans = record.measurements.get("plans", {})
    minutes = ", ".join(f"{name} {plan['budget'] / 60:.1f}" for name, plan in plans.items())
    return "\n\n".join(
        [
            "## Claims",
            *claim_sections(checked, "###", "claims/{}.svg"),
            RESERVATION,
            "Minutes of each claim's trainings, with what belongs to them (`--threads 1`): "
            f"{minutes}. The models of a claim see equally many positions, padding included. "
            "With this file there the command makes the same trainings again.",
            *_earlier_origins(record, "Decided"),
        ]
    )


def _origin(record: Record) -> list[str]:
    return [*_counted(record), *_earlier_origins(record, "Trained")]


def _earlier_origins(record: Record, done: str) -> list[str]:
    """Name what was made at other commits than the last one, or on other machines."""
    sentences = []
    for key, last, where, what in (
        ("commits", record.commit, "at", "at an earlier commit"),
        ("machines", record.machine, "on", "on another machine"),
    ):
        others: dict[str, list[str]] = {}
        for title, origin in record.measurements.get(key, {}).items():
            if origin != last:
                others.setdefault(origin, []).append(title)
        listed = "; ".join(f"{where} {origin}: {', '.join(t)}" for origin, t in others.items())
        sentences += [f"{done} {what}, {listed}."] if others else []
    return sentences


PAGE = ResultPage(
    "tables",
    "The paper's tables, made again",
    {"table1": table1, "table2": table2, "french": french, "table3": table3, "claims": claims},
    "What `heedful paper` makes of the paper's tables and claims: [how it is done, and what may be "
    "concluded](../howto/tables.md). Table 4 has [a page of its own](parsing.md).",
)


if __name__ == "__main__":
    main()
