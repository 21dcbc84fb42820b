"""The pages `docs/results/speed*.md`, of one processor each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.report import RESULTS
from benchmarks.speed.comparisons import CELLS, HEADS, Measured, compare
from benchmarks.speed.plots import draw, pictures
from benchmarks.speed.whole import command_seconds
from heedful.experiments.page import code_block, named, table
from heedful.experiments.record import Record

TITLES = {
    "training": "Training, command to command",
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
    "ranks": "Two processes against one",
    "gpu": "On a GPU",
}
DRAWN = ("curves", "corpus")
PAGES = {
    "speed": "Speed",
    "speed-bf16": "Speed where products in bf16 are fast",
    "speed-avx2": "Speed with AVX2 alone, on a processor held to it",
}
"""Titles by folder of results: a comparison on one processor says little about another."""
INTRODUCTION = """Measured by `make bench-speed` (`python -m benchmarks.speed --out FOLDER`):
heedful and other toolkits in turns, each in a process of its own, with as many threads, on the same
text, subwords, shapes, beam and number of tokens; translating, with the same weights. One warm-up,
then the median; the smallest and the largest are in brackets. Operations are counted for the real
tokens only. The share of products is of the rate that large matrix products were measured to reach
here a moment before, in the same precision. Up to commit 4bc27d6 the rate in fp32 was that of
torch's own product; on processors that MKL does not know it is lower than what can be reached, and
a share may be above 100 %."""


def write_page(folder: Path) -> Path:
    """Write the page and its pictures from all records of a folder."""
    for name, record in read_records(folder).items():
        if name in DRAWN:
            draw(name, record.measurements, folder)
    page = folder.parent / f"{folder.name}.md"
    page.write_text(page_text(folder), encoding="utf-8")
    return page


def page_texts() -> dict[str, str]:
    """Lay the pages of all processors out."""
    return {name: page_text(RESULTS / name) for name in PAGES if (RESULTS / name).is_dir()}


def read_records(folder: Path) -> dict[str, Record]:
    """Read the records of all sections that were measured."""
    files = {name: folder / f"{name}.json" for name in TITLES}
    return {name: Record.read(file) for name, file in files.items() if file.exists()}


def page_text(folder: Path) -> str:
    """Lay the page of a folder out."""
    records = read_records(folder)
    parts = [f"# {PAGES.get(folder.name, 'Speed')}", " ".join(INTRODUCTION.split())]
    if rows := compare({name: record.measurements for name, record in records.items()}):
        parts.append(table(HEADS, CELLS, rows))
    for name, record in records.items():
        versions = _versions(record.measurements)
        listed = ", ".join(f"{toolkit} {version}" for toolkit, version in versions.items())
        parts += [
            *(f"## {TITLES[name]}", *body(name, record.measurements)),
            code_block(dict.fromkeys(record.commands), "text"),
            f"{record.origin} {listed}{'.' * bool(listed)}".strip(),
        ]
    return "\n\n".join(parts) + "\n"


def body(name: str, section: Measured) -> list[str]:
    """Lay one section out."""
    shown = pictures(name, section) if name in DRAWN else []
    if name in _BODIES:
        return [_BODIES[name](section), *shown]
    if shown:
        return shown
    reports = [section] if "measurements" in section else [*section.values()]
    return [part for report in reports for part in (_what(report), report_table(report))]


def report_table(report: Measured) -> str:
    """Lay the measurements of all systems out, as `heedful bench` gives them."""
    measurements = report["measurements"]
    units, extras = [*measurements[0]["counts"]], _extras(report)
    heads = ["", "precision", *(f"{unit}/s" for unit in units), "seconds", "GFLOP/s"]
    heads += ["share of products", "peak memory, MB", *extras]
    cells = ["{who}", "{precision}", *(f"{{per_second[{unit}]:,.1f}}" for unit in units)]
    cells += ["{seconds[median]:.3f} ({seconds[min]:.3f}-{seconds[max]:.3f})", "{rate}"]
    cells += ["{part}", "{megabytes:,.0f}", *(f"{{{extra}:.4g}}" for extra in extras)]
    rows = [
        system
        | {"rate": "" if system["gflops"] is None else f"{system['gflops']:,.0f}"}
        | {"part": "" if system["share"] is None else f"{system['share']:.0%}"}
        | {"megabytes": system["memory"] / 1e6}
        for system in measurements
    ]
    sentences = [
        f"Alone the products of {system['who']} take {alone['seconds']:.3f} s, "
        f"{alone[part]:.0%} {part}."
        for system in measurements
        for alone in [system.get("products alone", {})]
        for part in ("of a step", "of a pass")
        if part in alone
    ]
    for system in measurements:
        if "profile" in system:
            shares = ", ".join(f"{name} {part:.0%}" for name, part in system["profile"].items())
            sentences.append(f"Where the time of {system['who']} goes: {shares}.")
    notes = [f"Not measured: {note}" for note in report["notes"]]
    return "\n\n".join([table(" | ".join(heads), " | ".join(cells), rows), *sentences, *notes])


def _extras(report: Measured) -> list[str]:
    """List the other measures that all systems have."""
    known = ("milliseconds a sentence", "lines equal to the first", "bleu", "loss")
    return [name for name in known if all(name in system for system in report["measurements"])]


def _what(report: Measured) -> str:
    """Describe a measurement."""
    facts = ", ".join(
        f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}"
        for name, value in report["what"].items()
        if name not in ("run", "weights")
    )
    return f"{facts[:1].upper()}{facts[1:]}.{_products(report['machine'], ' ')}"


def _products(machine: Measured, before: str) -> str:
    """Write the measured rates of products, if there are any."""
    rates = machine.get("product_gflops", {})
    listed = ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items())
    return f"{before}Products: {listed} GFLOP/s." if rates else ""


def _training(section: Measured) -> str:
    """Write both sides of every turn."""
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
        f"`{section['recipe']}`, {section['pairs']:,} pairs of Multi30k English-German, one epoch. "
        f"heedful learns its subwords in that time; Joey NMT is given them.\n\n{turns}"
    )


def _kernels(section: Measured) -> str:
    """Write each function beside its twin, then whole steps."""
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
        "Forwards and back, in turns with the plain twin; a step without any compiled function is "
        "that with `HEEDFUL_NATIVE=0`. The ratio is the median of all turns.\n\n"
        + table(heads, cells, rows)
    )


def _search(section: Measured) -> str:
    """Write searches with and without compiled functions, with profiles, and two parts alone."""
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
        "best continuations": "best continuations of a step, {}",
        "batches at a time": "256 sentences, 32 at a time, {}: several batches at a time, or one",
        "rows at a time": "256 sentences, 64 at a time, {}: 256 rows at a time in each thread, or "
        "64",
    }
    turns = [
        {"what": what.format(name), "ratio": times["ratio"]}
        | {"times": [f"{ms:,.{2 if key == 'best continuations' else 0}f}" for ms in times.values()]}
        for key, what in ways.items()
        for name, times in section[key].items()
    ]
    parts = table(
        " | ms | plain, or the second, ms | ratio",
        "{what} | {times[0]} | {times[1]} | {ratio:.2f}",
        turns,
    )
    return (
        "`paper-base` with random weights, 8,000 subwords, 14 tokens, beam 4; in turns with the "
        "plain modules (`HEEDFUL_NATIVE=0`), which multiply by oneDNN. The ratio is of the "
        "medians. Products alone, and then where the time goes, are of a search by one thread."
        f"\n\n{searches}{_products(first, chr(10) * 2)}\n\n{parts}"
    )


def _start(section: Measured) -> str:
    """Write medians and all."""
    rows = [
        {"name": name, **times, "least": min(times["all"]), "most": max(times["all"])}
        for name, times in section.items()
    ]
    return table(" | seconds | range", "{name} | {median:.2f} | {least:.2f}-{most:.2f}", rows)


def _corpus(section: Measured) -> str:
    """Write the cost per pair and per token."""
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
    return f"Europarl French-English, `small`, {section['steps']} steps on each.\n\n{costs}"


def _ranks(section: Measured) -> str:
    """Write the rate of each."""
    rates = table(
        " | target tokens/s | seconds of the command",
        "{name} | {rate:,.0f} | {command_seconds:.1f}",
        named(section["runs"]),
    )
    steps = f"Processes of so many threads, gloo between them, {section['steps']} steps."
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
