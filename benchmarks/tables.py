"""
The paper's tables again, and the claims: what `heedful paper` made for the pages of results.

    python -m benchmarks.tables table1 | table2 | table3 | claims [--system NAME ...] [--plan FILE]
    python -m benchmarks.tables french
    python -m benchmarks.tables table2 | french | table3 --count

Writes `docs/results/NAME.json`, the pictures and the page from them. Table 2 and Table 3 are
trained on Multi30k English-German, raw; the claims on the embedded grammar. A run whose JSON is
there is made again by the plan in it, step by step; what a folder holds is not made again.
Table 2 has ensembles of three seeds too. `french` trains four of its systems on Tatoeba
English-French.

`--system` trains some systems of Table 2 with their ensembles, or rows of Table 3, or decides some
claims, only, and keeps what the JSON has of the others; these claims then share the whole time.
`--plan` names the plan of all, where there is no JSON yet; `--replan` plans anew where there is
one, in `--budget` if that is given. `--runs` names the folder of models, a new one for other
systems. `--count` trains nothing: it counts the operations of a record again, by its plan.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.corpora import VOCABULARY, multi30k, tatoeba
from benchmarks.figures import rewrite
from benchmarks.operations import count_again
from benchmarks.report import RESULTS, ROOT, commit, keep, read, store
from heedful.config.load import load_config
from heedful.errors import SettingError
from heedful.paper.claims.check import RESERVATION, check_claims, draw, to_dict
from heedful.paper.claims.models import TUNED
from heedful.paper.claims.statement import Checked
from heedful.paper.claims.statements import CLAIMS
from heedful.paper.systems.corpus import TableCorpus, grammar_corpus
from heedful.paper.systems.measured import MeasuredSystem
from heedful.paper.systems.plan import Plan, describe, parse_budget
from heedful.paper.systems.report import equal_cost_rows, plain
from heedful.paper.systems.system import TableSystem, count_parameters
from heedful.paper.systems.table2 import COMMON, ENSEMBLES, RECIPE, SYSTEMS, Table2, make_table2
from heedful.paper.systems.table3 import SYSTEMS as ROWS
from heedful.paper.systems.table3 import Table3, train_rows
from heedful.paper.table1 import make_table1
from heedful.paper.tables import markdown

# In seconds.
_BUDGETS = {
    "table1": 180.0,
    "table2": 9_000.0,
    "table3": 10_800.0,
    "claims": 3_600.0,
    "french": 3_600.0,
}
_THREADS = 1
_OF_TABLE2 = (*SYSTEMS, *ENSEMBLES)
_IN_FRENCH = ("gnmt", "convs2s", "moe", "base")


def main() -> None:
    """Make one table, or go on with it, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=_MAKERS)
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "tables")
    parser.add_argument("--system", action="append", default=[], metavar="NAME")
    parser.add_argument("--plan", type=Path, metavar="FILE")
    parser.add_argument("--replan", action="store_true")
    parser.add_argument("--budget", type=_time, metavar="TIME")
    parser.add_argument("--count", action="store_true")
    options = parser.parse_args()
    _check(parser, options)
    if options.budget:
        _BUDGETS[options.what] = options.budget
    measured = commit()
    out = options.runs / options.what
    if options.count:
        record = read(options.what)
        store(options.what, record | {"found": _count(options.what, record["found"], measured)})
        rewrite()
        return
    if options.replan and out.exists():
        parser.error(f"--replan needs a folder without earlier trainings, but {out} is there")
    begun = out / "commit"
    if begun.exists() and begun.read_text(encoding="utf-8") != measured:
        parser.error(f"{out} was begun at another commit; name a new folder in --runs")
    out.mkdir(parents=True, exist_ok=True)
    begun.write_text(measured, encoding="utf-8")
    chosen = {"names": options.system} if options.system else {}
    given = {"given": options.plan} if options.what in ("table2", "table3") else {}
    replan = {"replan": True} if options.replan else {}
    found = _MAKERS[options.what](out, **chosen, **given, **replan)
    keep(options.what, found, measured)
    rewrite()


def _time(text: str) -> float:
    """Read a time in seconds."""
    try:
        return parse_budget(text)
    except SettingError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End with a message if the options do not go together."""
    has_record = (RESULTS / f"{options.what}.json").exists()
    tables = options.what in ("table2", "table3")
    chosen = options.plan or (options.system and options.what != "claims")
    refused = [
        (
            options.system and options.what == "french",
            "french chooses its systems itself; leave out --system",
        ),
        (options.plan and not tables, "--plan is for table2 and table3"),
        (
            options.system and options.what == "table1",
            "--system is for table2, table3 and claims",
        ),
        (options.plan and has_record, "--plan is for a table without JSON, which has it"),
        (options.replan and options.what == "table1", "--replan is for what is trained"),
        (
            options.replan and chosen,
            "--replan is for all systems of a table; leave out --system and --plan",
        ),
        (
            options.system and not (has_record or options.plan),
            "--system needs the JSON of the other systems, or --plan",
        ),
        (
            options.budget and not options.replan,
            "--budget is for --replan; a plan has its own",
        ),
        (
            options.count and not (options.what in _COUNTED and has_record),
            f"--count needs a record of {', '.join(_COUNTED)}",
        ),
        (
            options.count and (options.system or options.plan or options.replan),
            "--count counts a whole record; leave out what chooses trainings",
        ),
    ]
    for is_refused, message in refused:
        if is_refused:
            parser.error(message)
    systems = {"table2": SYSTEMS, "table3": ROWS}.get(options.what, ())
    known = [*CLAIMS] if options.what == "claims" else [one.name for one in systems]
    if unknown := sorted({*options.system} - {*known}):
        parser.error(f"--system must be one of {', '.join(known)}, but is {unknown[0]!r}")
    for one in SYSTEMS if options.what == "table2" else ():
        if one.after in options.system and one.name not in options.system:
            parser.error(f"--system {one.after} needs {one.name}, which goes on from it")


def _table1(out: Path) -> dict[str, Any]:
    """Count and time layers."""
    table = make_table1(out, _BUDGETS["table1"], threads=_THREADS, say=print)
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


def _table2(
    out: Path, names: Sequence[str] = (), given: Path | None = None, replan: bool = False
) -> dict[str, Any]:
    """Train the siblings of Table 2's systems, and put them beside those of earlier calls."""
    text, whole = multi30k(out.parent), _whole_plan(out.name, given, replan)
    again = _with_seeds(names)
    if whole is not None and names:
        whole = _renew(whole, again)
    plan = _write_plan(out, whole, again)
    table = make_table2(
        *(text, out, _BUDGETS["table2"]),
        names=names,
        ensembles=True,
        plan=plan,
        threads=_THREADS,
        say=print,
    )
    found = table.to_dict() | {
        "conclusions": [one.sentence for one in table.differences],
        "plan": whole or _read_json(out / "plan.json"),
    }
    if names and (RESULTS / "table2.json").exists():  # perhaps only since the beginning
        found = _beside(found, read("table2"), again, [one.name for one in _OF_TABLE2])
        titles = [one.title for one in _OF_TABLE2 if one.name in again]
        earlier = [
            said
            for said in read("table2")["found"]["conclusions"]
            if not any(title in said for title in titles)
        ]
        found["conclusions"] = list(dict.fromkeys([*earlier, *found["conclusions"]]))
    systems = tuple(map(MeasuredSystem.of, found["here"]))
    Table2(systems, (), found["text"]).draw(RESULTS / "table2.svg")
    return found


def _with_seeds(names: Sequence[str]) -> list[str]:
    """Add the further seeds and the ensembles of Table 2's systems `names`."""
    of_them = [one.name for one in ENSEMBLES if one.name.rpartition("-")[0] in names]
    return [*names, *of_them]


def _french(out: Path, replan: bool = False) -> dict[str, Any]:
    """Train the systems of Table 2 that matter most on another pair of languages."""
    plan = _write_plan(out, _whole_plan(out.name, None, replan), ())
    table = make_table2(
        *(tatoeba(out.parent), out, _BUDGETS[out.name]),
        names=_IN_FRENCH,
        plan=plan,
        threads=_THREADS,
        say=print,
    )
    return {
        "here": plain(table.systems),
        "text": table.text,
        "conclusions": [one.sentence for one in table.differences],
        "plan": _read_json(out / "plan.json"),
    }


def _table3(
    out: Path, names: Sequence[str] = (), given: Path | None = None, replan: bool = False
) -> dict[str, Any]:
    """Train the rows of Table 3, and put them beside those of earlier calls."""
    text, whole = multi30k(out.parent), _whole_plan(out.name, given, replan)
    plan = _write_plan(out, whole, names)
    measured = train_rows(
        *(text, out, _BUDGETS["table3"]), names=names, plan=plan, threads=_THREADS, say=print
    )
    found = {"here": plain(measured), "text": describe(text)}
    found["plan"] = whole or _read_json(out / "plan.json")
    if names and (RESULTS / "table3.json").exists():
        found = _beside(found, read("table3"), names, [one.name for one in ROWS])
    table = Table3(tuple(map(MeasuredSystem.of, found["here"])), found["text"])
    table.draw(RESULTS / "table3.svg")
    return found | table.to_dict()


def _count(name: str, found: dict[str, Any], measured: str) -> dict[str, Any]:
    """Count the operations of a record's trainings again, by its plan, without training."""
    unpack, systems = _COUNTED[name]
    measurements = tuple(map(MeasuredSystem.of, found["here"]))
    with TemporaryDirectory() as scratch:
        out = Path(scratch)
        (out / "plan.json").write_text(json.dumps(found["plan"]), encoding="utf-8")
        plan = Plan.read(out / "plan.json")
        counted = count_again(measurements, plan, systems, unpack(out), out)
    for before, after in zip(measurements, counted, strict=True):
        print(f"{after.title}: {after.flops:.3e} operations, {before.flops:.3e} before")
    if name == "table2":
        Table2(tuple(counted), (), found["text"]).draw(RESULTS / "table2.svg")
    return found | {"here": plain(counted), "counted": measured}


def _beside(
    found: dict[str, Any], record: dict[str, Any], names: Sequence[str], order: Sequence[str]
) -> dict[str, Any]:
    """Put the systems `names` beside the others of an earlier record, in an order."""
    earlier = record["found"]
    others = [one for one in earlier["here"] if one["name"] not in names]
    known = earlier.get("commits", {})
    commits = {one["title"]: known.get(one["title"], record["commit"]) for one in others}
    machines = _machines(record, commits)
    here = sorted([*found["here"], *others], key=lambda one: order.index(one["name"]))
    return earlier | found | {"here": here, "commits": commits, "machines": machines}


def _machines(record: dict[str, Any], names: Iterable[str]) -> dict[str, str]:
    """Name the machine of each part of an earlier record that stays."""
    known = record["found"].get("machines", {})
    return {name: known.get(name, record["machine"]) for name in names}


def _claims(out: Path, names: Sequence[str] = (), replan: bool = False) -> dict[str, Any]:
    """Decide claims, trained ones on the embedded grammar, and put them beside the others."""
    has_record = (RESULTS / "claims.json").exists()
    record = read("claims") if has_record else {"found": {"claims": {}}, "commit": ""}
    earlier, plans = record["found"]["claims"], record["found"].get("plans", {})
    found = check_claims(
        names or [*CLAIMS],
        out,
        lambda: grammar_corpus(out / "text"),
        _BUDGETS["claims"],
        plan=None if replan or not plans else _write_plans(out / "earlier", plans),
        threads=_THREADS,
        say=print,
    )
    for name, checked in found.items():
        picture = RESULTS / "claims" / f"{name}.svg"
        picture.parent.mkdir(exist_ok=True)
        draw(CLAIMS[name].said, checked, picture)
    decided = earlier | to_dict(found)
    plans = {name: plan for name, plan in plans.items() if name in CLAIMS}
    known = record["found"].get("commits", {})
    kept = [name for name in earlier if name not in found and name in CLAIMS]
    made = {name: _read_json(file) for name in found if (file := out / name / "plan.json").exists()}
    return {
        "claims": {name: decided[name] for name in CLAIMS if name in decided},
        "plans": plans | made,
        "commits": {name: known.get(name, record["commit"]) for name in kept},
        "machines": _machines(record, kept) if kept else {},
    }


def _write_plans(folder: Path, plans: Mapping[str, Any]) -> Path:
    """Write the plans of claims, to make their trainings again."""
    for name, plan in plans.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    return folder


_MAKERS: dict[str, Callable[..., dict[str, Any]]] = {
    "table1": _table1,
    "table2": _table2,
    "table3": _table3,
    "claims": _claims,
    "french": _french,
}


# A record from before operations were counted as they are computed.
_COST_WITH_PADDING = (
    "6842f45",
    "Operations of the recurrent model include padding that was not computed, and are not counted "
    "again; seconds do not.",
)


def _counted(record: dict[str, Any]) -> list[str]:
    """Say where operations were counted again."""
    again = "Operations were counted again at commit {}, by the plan, without training."
    return [again.format(record["found"]["counted"])] if "counted" in record["found"] else []


_COUNTED: dict[str, tuple[Callable[[Path], TableCorpus], Sequence[TableSystem]]] = {
    "table2": (multi30k, _OF_TABLE2),
    "french": (tatoeba, _OF_TABLE2),
    "table3": (multi30k, ROWS),
}
"""Text and systems of the records with curves of operations."""


def _whole_plan(name: str, given: Path | None, replan: bool) -> dict[str, Any] | None:
    """Read the plan of all systems: one that is given, or that of the run that the page has."""
    if given is not None:
        return _read_json(given)
    if replan or not (RESULTS / f"{name}.json").exists():
        return None
    plan: dict[str, Any] = read(name)["found"]["plan"]
    return plan


def _renew(plan: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """
    Take the settings of Table 2's systems `names` from the code, and their steps as planned.

    Their rates are those of the plan, so models must be as large as they were.
    """
    today = {one.name: one.settings for one in _OF_TABLE2}
    renewed = []
    for planned in plan["systems"]:
        if planned["name"] in names:
            settings = planned["settings"]
            steps = next(n for n, one in enumerate(settings) if one.startswith("train.steps="))
            text = [one for one in settings[:steps] if one.startswith("data.")]
            settings = [*COMMON, text[0], *today[planned["name"]], *text[1:], *settings[steps:]]
            weights = count_parameters(load_config(RECIPE, settings))
            if weights != planned["parameters"]:
                raise SystemExit(f"{planned['name']} has another size than in the plan; plan anew")
            planned = planned | {"settings": settings}
        renewed.append(planned)
    return plan | {"systems": renewed}


def _write_plan(out: Path, plan: dict[str, Any] | None, names: Sequence[str]) -> Path | None:
    """Write a plan, or the part of it for `names`, to make that run again."""
    if plan is None:
        return None
    out.mkdir(parents=True, exist_ok=True)
    file = out / "earlier.json"
    chosen = [one for one in plan["systems"] if not names or one["name"] in names]
    file.write_text(json.dumps(plan | {"systems": chosen}), encoding="utf-8")
    return file


def _read_json(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def body() -> str:
    """Lay the page out: a section for each table that was made."""
    parts = [
        "What `heedful paper` makes of the paper's tables and claims: [how it is done, and what "
        "may be concluded](../howto/tables.md). Table 4 has [a page of its own](parsing.md)."
    ]
    for name, (title, lay_out) in _SECTIONS.items():
        if (RESULTS / f"{name}.json").exists():
            record = read(name)
            parts += [
                f"## {title}",
                lay_out(record["found"]),
                *_counted(record),
                *_earlier_commits(record, "Decided" if name == "claims" else "Trained"),
                f"```sh\npython -m benchmarks.tables {name}\n```",
                f"Machine: {record['machine']}. Commit {record['commit']}, {record['date']}.",
            ]
    return "\n\n".join(parts)


def _layers(found: dict[str, Any]) -> str:
    return "\n\n".join(
        [
            found["count_heading"],
            markdown(found["counts"]),
            found["time_heading"],
            markdown(found["times"]),
            "![Time of a layer against length and width](table1.svg)",
            *found["conclusions"],
        ]
    )


def _siblings(found: dict[str, Any]) -> str:
    systems = tuple(map(MeasuredSystem.of, found["here"]))
    trained = {one.name for one in systems}
    table = Table2(systems, (), found["text"])
    return "\n\n".join(
        [
            f"Multi30k English-German, raw (29,000 pairs), {VOCABULARY:,} subwords; BLEU, cased, "
            "on test_2016_flickr, beam 4, the average of the last checkpoints. The steps are those "
            f"of a plan of {len(found['plan']['systems'])} trainings in "
            f"{found['plan']['budget'] / 60:.0f} minutes (`--threads 1`), from rates measured "
            f"one at a time: each has {systems[0].seconds / 60:.1f} minutes (GNMT + RL as many "
            "again after GNMT). An ensemble is three trainings that differ in their seed, and "
            "translate together (the mean of their probabilities); the published ones are of "
            "eight. Not trained: "
            f"{', '.join(one.title for one in _OF_TABLE2 if one.name not in trained) or 'none'}. "
            "Trials of 300 steps chose a rate of 3e-3 for Deep-Att, GNMT and MoE, "
            "larger first weights for the last two, and Glorot's for Deep-Att; all others share a "
            "rate of 1.5e-3 that was not tuned (GNMT + RL goes on at 1e-4). "
            "Deep-Att's perplexity is of words, so no other can be compared with it. "
            "Trainings ran beside other work, at counted time; the speed of search "
            "is what was left then. Differences are of systems that one call trained.",
            markdown(table.rows),
            "On the same validation curves, at equal cost:",
            markdown(equal_cost_rows(systems)),
            "![Validation BLEU against operations](table2.svg)",
            *found["conclusions"],
            *table.reservations,
            "Which of the slowly learning systems is ahead depends on the time. With 3.4 minutes "
            "each (this page at commit d349f04) MoE had 6.9 BLEU, Deep-Att + PosUnk 8.9, GNMT "
            "11.0, the big model 5.3, ByteNet 17.6, ConvS2S 30.8 and the base model 28.3; with "
            "17.5 minutes on a slower machine, and batches of mixed lengths (commit 8ab240c), MoE "
            "20.9, Deep-Att + PosUnk 17.9, GNMT 12.7, the big model 8.7, ConvS2S 32.0 and the base "
            "model 31.3.",
            "Published (BLEU on newstest2014, and the cost of training as printed and by the "
            "paper's formula):",
            markdown(table.published_rows),
        ]
    )


def _in_french(found: dict[str, Any]) -> str:
    systems = tuple(map(MeasuredSystem.of, found["here"]))
    table = Table2(systems, (), found["text"])
    return "\n\n".join(
        [
            "Four of the systems again, with the same settings, on another pair of languages: "
            f"Tatoeba English-French (161,126 pairs of short sentences), {VOCABULARY:,} subwords; "
            "BLEU, cased, on its test part of 2,001. The steps are of a plan of "
            f"{len(found['plan']['systems'])} trainings in "
            f"{found['plan']['budget'] / 60:.0f} minutes (`--threads 1`): each has "
            f"{systems[0].seconds / 60:.1f} minutes.",
            markdown(table.rows),
            *table.marks,
            "On the same validation curves, at equal cost:",
            markdown(equal_cost_rows(systems)),
            *found["conclusions"],
            "One training each: what another seed would change is not in these intervals either.",
        ]
    )


def _variations(found: dict[str, Any]) -> str:
    table = Table3(tuple(map(MeasuredSystem.of, found["here"])), found["text"])
    return "\n\n".join(
        [
            f"Multi30k English-German, raw (29,000 pairs), {VOCABULARY:,} subwords; perplexity by "
            "subword at the last validation, and BLEU, cased, of the average of the last "
            "checkpoints on the validation text, beam 4. The steps are those of a plan of all "
            f"{len(ROWS)} trainings in {found['plan']['budget'] / 3600:.0f} hours (`--threads 1`).",
            markdown(table.rows),
            "![Published and measured perplexity and BLEU](table3.svg)",
            *table.conclusions,
        ]
    )


def _earlier_commits(record: dict[str, Any], done: str) -> list[str]:
    """Name what was made at other commits than the last one, or on other machines."""
    said = []
    for key, what in (("commit", "at an earlier commit"), ("machine", "on another machine")):
        others: dict[str, list[str]] = {}
        for title, made_at in record["found"].get(f"{key}s", {}).items():
            if made_at != record[key]:
                others.setdefault(made_at, []).append(title)
        where = "at" if key == "commit" else "on"
        listed = "; ".join(f"{where} {one}: {', '.join(names)}" for one, names in others.items())
        said += [f"{done} {what}, {listed}."] if others else []
    return said


_WITH_RECURRENT = ("cost", "long")  # decided before they said how their models were chosen
# Rules that were changed when results had been seen.
_BEFORE = {
    "mask": [
        "A first rule wanted a perplexity below the one with the mask, and said of the same "
        "numbers that the statement does not hold (commit c46ca78). Both end alike, so it is "
        "within a tenth since."
    ],
    "gradients": [
        "A first rule asked for less of a fall with both than to a hundredth, and looked at one "
        "draw of torch's own first weights (commit 143b61e). Alive is not the same as learning: "
        "what models without one of them learn is on [another page](parts.md)."
    ],
    "scores": [
        "A first rule looked at 512 alone (commit 143b61e); a second one did not ask whether "
        "the models that decide still learn (commit d349f04)."
    ],
    "attention": [
        "A first rule decided while the model without attention still learnt (commit d349f04); "
        "both take 2.6 times the steps since, and the difference is an eighth of what it was."
    ],
    "batch-size": [
        "A first rule did not ask whether the models that decide still learn, and said of the same "
        "numbers that the statement holds (commit d349f04)."
    ],
    "dot-product": [
        "A first rule asked for more than once the time (commit d349f04); now it is twice."
    ],
    "long": [
        "A first rule looked at BLEU by the length of ordinary translations and found nothing "
        "lost: +0.0 BLEU between the Transformer and the recurrent model in the longest quarter "
        "(commit a44828d). They were too easy to tell models apart. A second one took the "
        "probability of the name among all words, to which knowing that a name is due belongs, "
        "beside the Transformer's, and said that the statement holds (commit 143b61e). The models "
        "are those that were trained at commit a7f7b90."
    ],
    "heads": [
        "A first rule asked only whether two heads differ more than before training, and said "
        "that they do (commit 143b61e); any sharper attention does. A second one took fewer than "
        "those of random attention as sharp for a refusal (commit d349f04); even heads that each "
        "have a task of their own have hardly more."
    ],
    "encoders": [
        "The recurrent encoder has wider first weights and twice the learning rate of the others, "
        "because with theirs recurrent models of this size hardly begin to learn; before, it had "
        "theirs, and was 1.0 BLEU behind self-attention (commit 143b61e)."
    ],
    "cost": [
        "Before, three validations were too few to see any of the qualities compared, the highest "
        "alone decided, and the recurrent model had a fifth more weights (commit 143b61e)."
    ],
}


def _cost_with_padding(name: str, found: dict[str, Any]) -> list[str]:
    """Say of a claim that was not decided again that its operations have padding."""
    commit_before, said = _COST_WITH_PADDING
    is_old = name == "cost" and found.get("commits", {}).get(name) == commit_before
    return [said] if is_old else []


def _decided(found: dict[str, Any]) -> str:
    parts = []
    for name, claim in found["claims"].items():
        checked = Checked.of(claim)
        parts += [
            f"### {claim['said']}",
            f"({claim['source']}) {checked.verdict} {checked.sentence}",
            *([TUNED] if name in _WITH_RECURRENT and TUNED not in checked.sentence else []),
            *_BEFORE.get(name, ()),
            *_cost_with_padding(name, found),
            *map(markdown, checked.tables),
            f"![{claim['said']}](claims/{name}.svg)",
        ]
    minutes = ", ".join(
        f"{name} {plan['budget'] / 60:.1f}" for name, plan in found.get("plans", {}).items()
    )
    return "\n\n".join(
        [
            *parts,
            RESERVATION,
            "Minutes of each claim's trainings, with what belongs to them (`--threads 1`): "
            f"{minutes}. The models of a claim see equally many positions, padding included. "
            "With this file there the command makes the same trainings again.",
        ]
    )


_SECTIONS: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "table1": ("Table 1: what a layer costs", _layers),
    "table2": ("Table 2: the systems that the paper is compared with", _siblings),
    "french": ("Table 2: English-French", _in_french),
    "table3": ("Table 3: variations of the Transformer", _variations),
    "claims": ("Claims", _decided),
}


if __name__ == "__main__":
    main()
