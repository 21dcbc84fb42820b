"""The pages `docs/results/speed.md` and `docs/results/speed-bf16.md`, of one processor each."""

import json
from pathlib import Path
from typing import Any

from benchmarks.speed.goals import Found, goals
from benchmarks.speed.plots import draw, pictures

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
    """Write the page and its pictures from all results."""
    for name in DRAWN:
        if (folder / f"{name}.json").exists():
            draw(name, _record(folder, name)["found"], folder)
    page = folder.parent / f"{folder.name}.md"
    page.write_text(page_text(folder), encoding="utf-8")
    return page


def page_text(folder: Path) -> str:
    """Lay the page out."""
    records = {name: _record(folder, name) for name in TITLES if (folder / f"{name}.json").exists()}
    found = {name: record["found"] for name, record in records.items()}
    parts = [f"# {PAGES.get(folder.name, 'Speed')}", " ".join(INTRODUCTION.split())]
    if rows := goals(found):
        parts.append(
            "| work | heedful | other | who | ratio | goal | |\n"
            "| --- | --- | --- | --- | --- | --- | --- |\n" + "\n".join(goal.row() for goal in rows)
        )
    for name, record in records.items():
        parts += [f"## {TITLES[name]}", *body(name, record["found"]), _origin(record)]
    return "\n\n".join(parts) + "\n"


def _record(folder: Path, name: str) -> dict[str, Any]:
    """Read the results of a section."""
    record: dict[str, Any] = json.loads((folder / f"{name}.json").read_text("utf-8"))
    return record


def body(name: str, found: Found) -> list[str]:
    """Lay one section out."""
    own = {
        "training": _training,
        "kernels": _kernels,
        "search": _search,
        "start": _start,
        "corpus": _corpus,
        "ranks": _ranks,
    }
    shown = pictures(name, found) if name in DRAWN else []
    if name in own:
        return [own[name](found), *shown]
    if shown:
        return shown
    if "measurements" in found:
        return [_what(found), table(found)]
    return [part for each in found.values() for part in (_what(each), table(each))]


def table(found: Found) -> str:
    """Write the results of all systems."""
    units = list(found["measurements"][0]["counts"])
    heads = ["", "precision", *(f"{unit}/s" for unit in units), "seconds", "GFLOP/s"]
    heads += ["share of products", "peak memory, MB", *_extras(found)]
    rows = [heads, ["---"] * len(heads)]
    for one in found["measurements"]:
        seconds = one["seconds"]
        rows.append(
            [
                one["who"],
                one["precision"],
                *(f"{one['per_second'][unit]:,.1f}" for unit in units),
                f"{seconds['median']:.3f} ({seconds['min']:.3f}-{seconds['max']:.3f})",
                "" if one["gflops"] is None else f"{one['gflops']:,.0f}",
                "" if one["share"] is None else f"{one['share']:.0%}",
                f"{one['memory'] / 1e6:,.0f}",
                *(f"{one[extra]:.4g}" for extra in _extras(found)),
            ]
        )
    lines = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    alone = "".join(
        f"\n\nAlone the products of {one['who']} take {one['products alone']['seconds']:.3f} s, "
        f"{one['products alone'][whole]:.0%} {whole}."
        for one in found["measurements"]
        for whole in ("of a step", "of a pass")
        if whole in one.get("products alone", {})
    )
    profiles = "".join(
        f"\n\nWhere the time of {one['who']} goes: "
        + ", ".join(f"{name} {share:.0%}" for name, share in one["profile"].items())
        + "."
        for one in found["measurements"]
        if "profile" in one
    )
    notes = "".join(f"\n\nNot measured: {note}" for note in found["notes"])
    return lines + alone + profiles + notes


def _extras(found: Found) -> list[str]:
    """List the other measures that all systems have."""
    known = ("milliseconds a sentence", "lines equal to the first", "bleu", "loss")
    return [name for name in known if all(name in one for one in found["measurements"])]


def _what(found: Found) -> str:
    """Describe the measurement."""
    facts = ", ".join(
        f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}"
        for name, value in found["what"].items()
        if name not in ("run", "weights")
    )
    rates = found["machine"].get("product_gflops", {})
    products = ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items())
    return f"{facts[:1].upper()}{facts[1:]}." + (f" Products: {products} GFLOP/s." * bool(rates))


def _training(found: Found) -> str:
    """Write both sides of every turn."""
    rows = [
        "| | seconds of the command | seconds of training by its own log | target tokens "
        "| tokens/s of the command | peak memory, MB |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for turn in found["turns"]:
        for who, one in turn.items():
            if "missing" not in one:
                seconds = one["seconds"]
                seconds = seconds[0] if isinstance(seconds, list) else seconds
                rows.append(
                    f"| {who} | {seconds:.1f} | {one['own_seconds']:.1f} "
                    f"| {one['target_tokens']:,} | {one['target_tokens'] / seconds:,.0f} "
                    f"| {one['memory'] / 1e6:,.0f} |"
                )
    return (
        f"`{found['recipe']}`, {found['pairs']:,} pairs of Multi30k English-German, one epoch. "
        "heedful learns its subwords in that time; Joey NMT is given them.\n\n" + "\n".join(rows)
    )


def _kernels(found: Found) -> str:
    """Write each function beside its twin, then whole steps."""
    rows = [
        f"| {one['function']}, {one['tokens']:,} tokens | {one['precision']} "
        f"| {one['compiled']:.2f} | {one['plain']:.2f} | {one['ratio']:.1f} |"
        for one in found["functions"]
    ]
    rows += [
        f"| a step of `{name}` with 4,000 tokens a side | {one['precision']} "
        f"| {1000 * one['compiled']:.0f} | {1000 * one['plain']:.0f} | {one['ratio']:.2f} |"
        for name, one in found["steps"].items()
    ]
    return (
        "Forwards and back, in turns with the plain twin; a step without any compiled function is "
        "that with `HEEDFUL_NATIVE=0`. The ratio is the median of all turns.\n\n"
        "| | precision | compiled, ms | plain, ms | ratio |\n| --- | --- | --- | --- | --- |\n"
        + "\n".join(rows)
    )


def _search(found: Found) -> str:
    """Write searches with and without compiled functions, with profiles, and two parts alone."""
    rows = [
        f"| {batch}, {one['precision']} | {one['compiled']:,.1f} | {one['plain']:,.1f} "
        f"| {one['ratio']:.2f} | {one['products alone']['of a pass']:.0%} "
        f"| {' | '.join(f'{share:.0%}' for share in one['profile'].values())} |"
        for batch, each in found["searches"].items()
        for one in each["rows"]
    ]
    first = next(iter(found["searches"].values()))
    heads = ["", "sentences/s", "plain", "ratio", "products alone", *first["rows"][0]["profile"]]
    rates = {name: f"{rate:,.0f}" for name, rate in first["product_gflops"].items()}
    parts = [
        f"| best continuations of a step, {name} | {one['compiled']:.2f} | {one['plain']:.2f} "
        f"| {one['ratio']:.2f} |"
        for name, one in found["best continuations"].items()
    ]
    parts += [
        f"| 256 sentences, 32 at a time, {precision}: several batches at a time, or one "
        f"| {one['several']:,.0f} | {one['one']:,.0f} | {one['ratio']:.2f} |"
        for precision, one in found["batches at a time"].items()
    ]
    parts += [
        f"| 256 sentences, 64 at a time, {precision}: 256 rows at a time in each thread, or 64 "
        f"| {one['many']:,.0f} | {one['few']:,.0f} | {one['ratio']:.2f} |"
        for precision, one in found["rows at a time"].items()
    ]
    return (
        "`paper-base` with random weights, 8,000 subwords, 14 tokens, beam 4; in turns with the "
        "plain modules (`HEEDFUL_NATIVE=0`), which multiply by oneDNN. The ratio is of the "
        "medians. Products alone, and then where the time goes, are of a search by one thread.\n\n"
        f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}\n"
        + "\n".join(rows)
        + f"\n\nProducts: {', '.join(f'{name} {rate}' for name, rate in rates.items())} GFLOP/s."
        "\n\n| | ms | plain, or the second, ms | ratio |\n| --- | --- | --- | --- |\n"
        + "\n".join(parts)
    )


def _start(found: Found) -> str:
    """Write medians and all."""
    rows = [
        f"| {name} | {one['median']:.2f} | {min(one['all']):.2f}-{max(one['all']):.2f} |"
        for name, one in found.items()
    ]
    return "| | seconds | range |\n| --- | --- | --- |\n" + "\n".join(rows)


def _corpus(found: Found) -> str:
    """Write the cost per pair and per token."""
    rows = [
        "| pairs | microseconds a pair to prepare | peak memory, MB | microseconds a target token "
        "to train | peak memory, MB |",
        "| --- | --- | --- | --- | --- |",
    ]
    for size, one in found["sizes"].items():
        rows.append(
            f"| {int(size):,} | {1e6 * one['prepare_seconds'] / int(size):,.0f} "
            f"| {one['prepare_memory'] / 1e6:,.0f} "
            f"| {1e6 * one['train_seconds'] / one['target_tokens']:,.0f} "
            f"| {one['memory'] / 1e6:,.0f} |"
        )
    steps = f"Europarl French-English, `small`, {found['steps']} steps on each."
    return steps + "\n\n" + "\n".join(rows)


def _ranks(found: Found) -> str:
    """Write the rate of each."""
    rows = [
        f"| {name} | {one['rate']:,.0f} | {one['command_seconds']:.1f} |"
        for name, one in found["runs"].items()
    ]
    return (
        f"Processes of so many threads, gloo between them, {found['steps']} steps.\n\n"
        "| | target tokens/s | seconds of the command |\n| --- | --- | --- |\n" + "\n".join(rows)
    )


def _origin(record: dict[str, Any]) -> str:
    """Say how, where and when."""
    shown = "\n".join(dict.fromkeys(record["commands"]))
    return (
        f"```text\n{shown}\n```\n\n{record['machine']}; commit {record['commit']}, "
        f"{record['date']}. {_versions(record['found'])}"
    ).strip()


def _versions(found: Any) -> str:
    """Collect the versions of all systems from the results."""
    seen: dict[str, str] = {}

    def look(part: Any) -> None:
        if isinstance(part, dict):
            seen.update(part.get("versions", {}))
            for inner in part.values():
                look(inner)
        elif isinstance(part, list):
            for inner in part:
                look(inner)

    look(found)
    listed = ", ".join(f"{name} {version}" for name, version in seen.items())
    return f"{listed}." if listed else ""
