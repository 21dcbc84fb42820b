"""The pages `docs/results/speed*.md`, each for one processor."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.report import RESULTS
from benchmarks.speed.comparisons import CELLS, HEADS, Measured, compare
from benchmarks.speed.plots import draw, pictures
from benchmarks.speed.whole import command_seconds
from heedful.bench.measurement import speed_rows
from heedful.experiments.page import code_block, fold, markdown, table, with_names
from heedful.experiments.record import Record
from heedful.text.nouns import count_noun

TITLES = {
    "training": "Training, time of the whole command",
    "step": "The training step",
    "step-fp32": "The training step in fp32",
    "step-small": "The training steps of small recipes",
    "kernels": "Compiled functions of training",
    "memory": "Memory of a step",
    "translate": "Translating, 32 sentences at a time",
    "translate-64": "Translating, 64 sentences at a time",
    "translate-one": "Translating one sentence at a time",
    "translate-random": "Translating with random weights",
    "search": "Compiled functions of the search",
    "lines": "Lines of mixed lengths",
    "stream": "A long text",
    "start": "From the start to the first translation",
    "data": "From text to batches",
    "curves": "Batch size, sentence length, vocabulary",
    "corpus": "A corpus that grows a hundredfold",
    "ranks": "Two processes compared with one",
    "gpu": "On a GPU",
}
DRAWN = ("curves", "corpus")
PAGES = {
    "speed": "Speed",
    "speed-bf16": "Speed on a processor with fast bf16 products",
    "speed-avx2": "Speed on a processor limited to AVX2",
}
"""Titles of the pages by folder of results; each folder is for one kind of processor."""
INTRODUCTION = """`make bench-speed` (`python -m benchmarks.speed --out FOLDER`) compares heedful
with other toolkits, which take turns with it, each in its own process. All get the same text, model
sizes, beam, output length and number of threads. They also get the same subwords, except in the
training command, and the same weights for translation. Times are medians after one warm-up, with
the shortest and the longest in parentheses. “Share of products” is the rate of operations on real
tokens, divided by the rate of large matrix products in the same precision. Up to commit 4bc27d6,
large fp32 products were computed by MKL, which is slow on AMD's processors. So shares measured up
to this commit can exceed 100%."""
_NO_AVX512 = "The CPU does not support AVX512"


def write_page(folder: Path) -> Path:
    """Write the page and its pictures from all records of a folder."""
    for name, record in read_records(folder).items():
        if name in DRAWN:
            draw(name, record.measurements, folder)
    page = folder.parent / f"{folder.name}.md"
    page.write_text(page_text(folder), encoding="utf-8")
    return page


def page_texts() -> dict[str, str]:
    """Lay out the pages of all processors."""
    return {name: page_text(RESULTS / name) for name in PAGES if (RESULTS / name).is_dir()}


def read_records(folder: Path) -> dict[str, Record]:
    """Read the records of all sections that were measured."""
    files = {name: folder / f"{name}.json" for name in TITLES}
    return {name: Record.read(file) for name, file in files.items() if file.exists()}


def page_text(folder: Path) -> str:
    """Lay out the page of a folder."""
    records = read_records(folder)
    parts = [f"# {PAGES.get(folder.name, 'Speed')}", " ".join(INTRODUCTION.split())]
    if rows := compare({name: record.measurements for name, record in records.items()}):
        parts.append(table(HEADS, CELLS, rows))
    for name, record in records.items():
        versions = _versions(record.measurements)
        listed = ", ".join(f"{toolkit} {version}" for toolkit, version in versions.items())
        details = [
            *body(name, record.measurements),
            code_block(dict.fromkeys(record.commands), "text"),
            f"{record.origin} {listed}{'.' * bool(listed)}".strip(),
        ]
        shown = pictures(name, record.measurements, folder.name) if name in DRAWN else []
        parts += [f"## {TITLES[name]}", *shown, fold("Numbers, commands, machine", details)]
    return "\n\n".join(parts) + "\n"


def body(name: str, section: Measured) -> list[str]:
    """Lay out the numbers of one section; curves are shown only as pictures."""
    if name in _BODIES:
        return [_BODIES[name](section)]
    if name in DRAWN:
        return []
    reports = [section] if "measurements" in section else [*section.values()]
    return [part for report in reports for part in (_what(report), report_table(report))]


def report_table(report: Measured) -> str:
    """Lay out the measurements of all systems, as `heedful bench` returns them."""
    measurements, extras = report["measurements"], _extras(report)
    further = [extras, *([f"{system[name]:.4g}" for name in extras] for system in measurements)]
    rows = [(*row, *more) for row, more in zip(speed_rows(measurements), further, strict=True)]
    sentences = [
        f"In {system['who']}, matrix products alone take {alone['seconds']:.3f} s, "
        f"{alone[part]:.0%} {part}."
        for system in measurements
        for alone in [system.get("products alone", {})]
        for part in ("of a step", "of a pass")
        if part in alone
    ]
    for system in measurements:
        if "profile" in system:
            shares = ", ".join(f"{name} {part:.0%}" for name, part in system["profile"].items())
            sentences.append(f"Shares of {system['who']}'s time by function: {shares}.")
    return "\n\n".join([markdown(rows), *sentences, *_not_measured(report["notes"])])


def _not_measured(notes: list[str]) -> list[str]:
    """Name the systems that were not measured, in a sentence for each reason."""
    lacking = [note.partition(":")[0] for note in notes if _NO_AVX512 in note]
    others = [
        re.sub(r"; `make peers` \w+ it", "", note) for note in notes if _NO_AVX512 not in note
    ]
    if lacking:
        others.append(f"{', '.join(lacking)}. This processor does not support AVX512.")
    return [f"Not measured: {note}" for note in others]


def _extras(report: Measured) -> list[str]:
    """List the additional measures that all systems have."""
    known = ("milliseconds a sentence", "lines equal to the first", "bleu", "loss")
    return [name for name in known if all(name in system for system in report["measurements"])]


def _what(report: Measured) -> str:
    """Describe the measured task."""
    what = {name: value for name, value in report["what"].items() if name not in ("run", "weights")}
    batch = ""
    if "steps" in what:
        names = ("steps", "pairs", "source tokens", "target tokens", "tokens")
        steps, pairs, source, target, _ = (what.pop(name) for name in names)
        batch = (
            f"; {count_noun(steps, 'step')} of {pairs:,} pairs with {source:,} source and "
            f"{target:,} target tokens"
        )
    facts = ", ".join(_fact(name, value) for name, value in what.items())
    return f"{facts[:1].upper()}{facts[1:]}{batch}.{_products(report['machine'], ' ')}"


def _fact(name: str, value: object) -> str:
    """Format one property of a measured task."""
    if (name, value) == ("settings", "as they are"):
        return "unchanged settings"
    return f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}"


def _products(machine: Measured, before: str) -> str:
    """Format the measured rates of matrix products; empty if there are no rates."""
    rates = machine.get("product_gflops", {})
    listed = ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items())
    return f"{before}Products: {listed} GFLOP/s." if rates else ""


def _training(section: Measured) -> str:
    """Lay out the training commands of both toolkits in every turn."""
    rows = [
        side
        | {"who": who, "whole": command_seconds(side), "megabytes": side["memory"] / 1e6}
        | {"rate": side["target_tokens"] / command_seconds(side)}
        for turn in section["turns"]
        for who, side in turn.items()
        if "missing" not in side
    ]
    turns = table(
        " | seconds of the command | seconds of training by its own log | target tokens "
        "| tokens/s of the command | peak memory, MB",
        "{who} | {whole:.1f} | {own_seconds:.1f} | {target_tokens:,} | {rate:,.0f} "
        "| {megabytes:,.0f}",
        rows,
    )
    return (
        f"Each toolkit trains `{section['recipe']}` for one epoch, on {section['pairs']:,} pairs "
        "of Multi30k English-German. Only heedful's time includes learning the subwords."
        f"\n\n{turns}"
    )


def _kernels(section: Measured) -> str:
    """Lay out compiled and plain times of each function, then of whole steps."""
    heads = " | precision | compiled, ms | plain, ms | ratio"
    cells = "{what} | {precision} | {compiled} | {plain} | {ratio}"
    ways = ("compiled", "plain")
    rows = [
        part
        | {
            "what": f"{part['function']}, {part['tokens']:,} tokens",
            "ratio": f"{part['ratio']:.1f}",
        }
        | {way: f"{part[way]:.2f}" for way in ways}
        for part in section["functions"]
    ]
    rows += [
        {"what": f"a step of `{name}` with 4,000 tokens a side", "precision": step["precision"]}
        | {"ratio": f"{step['ratio']:.2f}"}
        | {way: f"{1000 * step[way]:.0f}" for way in ways}
        for name, step in section["steps"].items()
    ]
    return (
        "Forward and backward passes with compiled functions alternate with passes in plain torch "
        "(`HEEDFUL_NATIVE=0`). The ratio is the median over all pairs of passes.\n\n"
        + table(heads, cells, rows)
    )


def _search(section: Measured) -> str:
    """Lay out searches with and without compiled functions, their profiles, and single parts."""
    first = next(iter(section["searches"].values()))
    profile = [*first["rows"][0]["profile"]]
    heads = ["", "sentences/s", "plain", "ratio", "products alone", *profile]
    cells = ["{batch}, {precision}", "{compiled:,.1f}", "{plain:,.1f}", "{ratio:.2f}"]
    cells += ["{products alone[of a pass]:.0%}", *(f"{{profile[{part}]:.0%}}" for part in profile)]
    searches = table(
        " | ".join(heads),
        " | ".join(cells),
        [
            row | {"batch": batch}
            for batch, search in section["searches"].items()
            for row in search["rows"]
        ],
    )
    ways = {
        "best continuations": "best continuations of a step, {}: compiled or plain",
        "batches at a time": "256 sentences in batches of 32, {}: several batches at once or one",
        "rows at a time": "256 sentences in batches of 64, {}: 256 rows at once in each thread or "
        "64",
    }
    turns = [
        {"what": what.format(name), "ratio": times["ratio"]}
        | {"times": [f"{ms:,.{2 if key == 'best continuations' else 0}f}" for ms in times.values()]}
        for key, what in ways.items()
        for name, times in section[key].items()
    ]
    parts = table(
        " | first, ms | second, ms | ratio",
        "{what} | {times[0]} | {times[1]} | {ratio:.2f}",
        turns,
    )
    return (
        "`paper-base` with random weights, 8,000 subwords, 14 tokens, beam 4. Compiled functions "
        "and plain modules (`HEEDFUL_NATIVE=0`, products by oneDNN) take turns; the ratio is "
        "that of their medians. Percentages are shares of the time of a search on one thread: "
        "“products alone” is the time that its matrix products take without other operations, and "
        "the columns after it divide the time among the parts of the search."
        f"\n\n{searches}{_products(first, chr(10) * 2)}\n\n{parts}"
    )


def _start(section: Measured) -> str:
    """Lay out the medians and ranges of start times."""
    rows = [
        {"name": name, **times, "least": min(times["all"]), "most": max(times["all"])}
        for name, times in section.items()
    ]
    return table(" | seconds | range", "{name} | {median:.2f} | {least:.2f}-{most:.2f}", rows)


def _corpus(section: Measured) -> str:
    """Lay out the cost per pair and per token."""
    rows = [
        {
            "pairs": int(size),
            "prepare": 1e6 * row["prepare_seconds"] / int(size),
            "train": 1e6 * row["train_seconds"] / row["target_tokens"],
            **{f"{key} MB": row[key] / 1e6 for key in ("prepare_memory", "memory")},
        }
        for size, row in section["sizes"].items()
    ]
    costs = table(
        "pairs | microseconds a pair to prepare | peak memory, MB "
        "| microseconds a target token to train | peak memory, MB",
        "{pairs:,} | {prepare:,.0f} | {prepare_memory MB:,.0f} | {train:,.0f} | {memory MB:,.0f}",
        rows,
    )
    steps = (
        f"For each size, `small` is trained for {section['steps']} steps on Europarl "
        "French-English."
    )
    return f"{steps}\n\n{costs}"


def _ranks(section: Measured) -> str:
    """Lay out the rate for each number of processes and threads."""
    rates = table(
        " | target tokens/s | seconds of the command",
        "{name} | {rate:,.0f} | {command_seconds:.1f}",
        with_names(section["runs"]),
    )
    steps = (
        f"Each training takes {section['steps']} steps. “2 of 1” means two processes with one "
        "thread each, connected by gloo."
    )
    return f"{steps}\n\n{rates}"


def _versions(part: Any) -> dict[str, str]:
    """Collect the versions of all systems from the measurements."""
    versions: dict[str, str] = dict(part.get("versions", {})) if isinstance(part, dict) else {}
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for value in inner:
        versions |= _versions(value)
    return versions


_BODIES: dict[str, Callable[[Measured], str]] = {
    "training": _training,
    "kernels": _kernels,
    "search": _search,
    "start": _start,
    "corpus": _corpus,
    "ranks": _ranks,
}
