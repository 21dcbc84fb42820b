"""Table rows that compare heedful with the best other toolkit in each task."""

from collections.abc import Callable
from typing import Any

from benchmarks.speed.whole import best_rates

Measured = dict[str, Any]
Row = dict[str, Any]

HEADS = "work | heedful | other | compared with | ratio"
CELLS = "{work} | {ours} | {theirs} | {who} | **{ratio:.2f} {unit}**"
WORKERS = "one worker for each core"
# Minimum number of lines, because the BLEU of fewer lines depends on single words.
_ENOUGH = 1000


def compare(sections: dict[str, Measured]) -> list[Row]:
    """Compare the measurements of all sections."""
    return [row for name, rows in _ROWS.items() if name in sections for row in rows(sections[name])]


def toolkit(measurement: Measured) -> str:
    """Return the name of the system, without the variant."""
    return str(measurement["who"]).split()[0]


def fastest(measurements: list[Measured], *names: str) -> Measured | None:
    """Find the fastest of the named toolkits; without names, of all toolkits except heedful."""
    others = [
        measurement
        for measurement in measurements
        if (toolkit(measurement) in names if names else toolkit(measurement) != "heedful")
    ]
    return min(others, key=_median, default=None)


def searches(
    section: Measured, precision: str, peer_precision: str = ""
) -> tuple[Measured | None, ...]:
    """
    Find the fastest searches in a precision: heedful, CTranslate2, and CTranslate2 with workers.

    `peer_precision`: the precision of CTranslate2, if it differs.
    """
    peers = [
        measurement
        for measurement in section["measurements"]
        if measurement["precision"] == (peer_precision or precision)
    ]
    workers = [measurement for measurement in peers if measurement["who"].endswith("workers")]
    alone = [measurement for measurement in peers if measurement not in workers]
    own = [
        measurement
        for measurement in section["measurements"]
        if measurement["precision"] == precision
    ]
    return fastest(own, "heedful"), fastest(alone, "ctranslate2"), fastest(workers, "ctranslate2")


def _median(measurement: Measured) -> float:
    return float(measurement["seconds"]["median"])


def _row(work: str, ours: str, theirs: str, who: str, ratio: float, unit: str = "times") -> Row:
    sides = {"ours": ours, "theirs": theirs, "who": who}
    return {"work": work, **sides, "ratio": ratio, "unit": unit}


def _rates(work: str, ours: Measured, peer: Measured, unit: str, name: str, form: str) -> Row:
    """Compare the throughput of two measurements; `name` is the printed unit."""
    mine, theirs = (f"{side['per_second'][unit]:{form}}" for side in (ours, peer))
    ratio = _median(peer) / _median(ours)
    return _row(work, f"{mine} {name}/s", theirs, peer["who"], ratio)


def _training(section: Measured) -> list[Row]:
    """Compare the rates of whole commands."""
    if any("missing" in turn["joey"] for turn in section["turns"]):
        return []
    ours, theirs = best_rates(section).values()
    work = f"training command, one epoch of Multi30k with `{section['recipe']}`"
    rate = f"{ours:,.0f} target tokens/s"
    return [_row(work, rate, f"{theirs:,.0f}", "Joey NMT", ours / theirs)]


def _step(section: Measured, *peers: str) -> list[Row]:
    """Compare the tokens per second of a step, and compute its share of the product rate."""
    ours, peer = section["measurements"][0], fastest(section["measurements"], *peers)
    work = f"training step, {section['what']['recipe']}, {ours['precision']}"
    rows = [] if peer is None else [_rates(work, ours, peer, "tokens", "tokens", ",.0f")]
    return [*rows, _share(section, "its share of products")]


def _share(section: Measured, work: str) -> Row:
    """Divide the rate of a step by the rate of large matrix products."""
    ours = section["measurements"][0]
    rate = section["machine"]["product_gflops"][ours["precision"]]
    speed, who = f"{ours['gflops']:,.0f} GFLOP/s", "large matrix products"
    return _row(work, speed, f"{rate:,.0f}", who, ours["share"], "times")


def _small_steps(section: Measured) -> list[Row]:
    """Compare the steps of small recipes with large products and with their own products."""
    rows = []
    for report in (section["small"], section["multi30k"]):
        ours, alone = report["measurements"][0], report["measurements"][0]["products alone"]
        times = (f"{_median(ours):.3f} s", f"{alone['seconds']:.3f} s", "its products alone")
        work = f"share of products, a step of `{report['what']['recipe']}`"
        rows += [
            _share(report, work),
            _row("time of this step", *times, alone["of a step"], "of it"),
        ]
    return rows


def _memory(section: Measured) -> list[Row]:
    """Compare the memory of a large step."""
    ours, *others = section["compared"]["measurements"]
    alone = section["alone"]["measurements"][0]
    rows = []
    if others:
        peer = min(others, key=lambda measurement: measurement["memory"])
        work = f"peak memory of a step with {ours['counts']['target tokens']:,} tokens a side"
        sizes = [f"{side['memory'] / 1e9:.2f} GB" for side in (ours, peer)]
        rows.append(_row(work, *sizes, peer["who"], ours["memory"] / peer["memory"]))
    gigabytes = alone["memory"] / 1e9
    work = f"peak memory of a step with {alone['counts']['target tokens']:,} tokens a side"
    return [*rows, _row(work, f"{gigabytes:.2f} GB", "", "", gigabytes, "GB")]


def _translations(section: Measured, what: str) -> list[Row]:
    """Compare sentences per second and BLEU in each precision that both toolkits support."""
    rows = []
    for precision, peer_precision in (("int8", ""), ("fp32", ""), ("bf16", "fp32")):
        ours, peer, workers = searches(section, precision, peer_precision)
        if ours is None or peer is None:
            continue
        work = f"translating, beam {section['what']['beam']}, {what}, {precision}"
        # sentences that are translated one after the other occupy only one worker
        note = " (only one is busy)" if section["what"]["batch"] == 1 else ""
        rows += [
            _rates(f"{work}, against {way}", ours, rival, "sentences", "sentences", ",.1f")
            for way, rival in ((f"{WORKERS}{note}", workers), ("one worker for all cores", peer))
            if rival is not None
        ]
        if "bleu" in ours and not peer_precision and section["what"]["lines"] >= _ENOUGH:
            apart = abs(ours["bleu"] - peer["bleu"])
            scores = (f"{side['bleu']:.2f}" for side in (ours, peer))
            rows.append(_row("BLEU of these translations", *scores, peer["who"], apart, "apart"))
    return rows


def _lines(section: Measured) -> list[Row]:
    """Compare searches of lines of mixed lengths; slow toolkits translate only some lines."""
    rows = []
    for part, name in (("all", "ctranslate2"), ("part", "marian")):
        measurements = section[part]["measurements"]
        ours, peer = fastest(measurements, "heedful"), fastest(measurements, name)
        work = f"translating {section[part]['what']['lines']:,} lines of mixed lengths"
        if ours is not None and peer is not None:
            rows.append(_rates(work, ours, peer, "sentences", "lines", ",.1f"))
    return rows


def _stream(section: Measured) -> list[Row]:
    """Compare the memory that a long text takes with the memory that a short text takes."""
    few, many = (section[name]["measurements"][0] for name in ("few", "many"))
    lines = [f"{part['counts']['sentences']:,} lines" for part in (few, many)]
    sizes = [f"{part['memory'] / 1e6:,.0f} MB" for part in (many, few)]
    ratio = many["memory"] / few["memory"]
    return [_row(f"memory of translating {lines[1]}", *sizes, lines[0], ratio)]


def _start(section: Measured) -> list[Row]:
    """Compare the seconds to the first translation."""
    ours, bare = (section[name]["median"] for name in ("first translation", "import torch"))
    times = (f"{ours:.2f} s", f"{bare:.2f} s", "`import torch`")
    return [_row("start of `translate` to the first translation", *times, ours - bare, "s more")]


_ROWS: dict[str, Callable[[Measured], list[Row]]] = {
    "training": _training,
    "step": lambda section: _step(section, "marian"),
    "step-fp32": _step,
    "step-small": _small_steps,
    "memory": _memory,
    "translate": lambda section: _translations(section, "32 at a time"),
    "translate-64": lambda section: _translations(section, "64 at a time"),
    "translate-one": lambda section: _translations(section, "one at a time"),
    "translate-random": lambda section: [
        row
        for what, part in section.items()
        for row in _translations(part, f"random weights, {what}")
    ],
    "lines": _lines,
    "stream": _stream,
    "start": _start,
}
