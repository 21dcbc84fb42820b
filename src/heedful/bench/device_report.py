"""The tables of `heedful bench device`, and the sentence about the utilization of the device."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from heedful.bench.device import ALL_ON, PLAIN
from heedful.bench.measurement import larger
from heedful.experiments.page import Rows, align_columns

Part = Mapping[str, Any]
"""The measurements of a record of `heedful bench device`."""
Entry = Mapping[str, Any]
NOT_MEASURED = "not measured"
_HEADS = {"who": "system", "levers": "optimizations"}
_KEYS = ("recipe", "what", "who", "precision", "levers", "kernels")


def device_lines(parts: Sequence[Part]) -> list[str]:
    """Lay out all parts, and state what share of the device's peak rate is used."""
    lines = [line for part in parts for line in ["", *_part_lines(part)]]
    return [*lines[1:], "", verdict(parts)]


def verdict(parts: Sequence[Part]) -> str:
    """State the share of the peak rate that a step uses, and which optimizations are off."""
    for part in parts:
        for entry in part["entries"]:
            if entry.get("levers") == ALL_ON and "counts" in entry and "seconds" in entry:
                share = share_of_products(entry, part)
                return (
                    f"A training step of `{entry['recipe']}` reaches {share:.0%} of this device's "
                    f"rate for large {entry_precision(entry, part)} matrix products; "
                    f"{_describe_off(entry)}."
                )
    return (
        "No step with all optimizations on was measured, so the utilization of this device is "
        "unknown."
    )


def _describe_off(entry: Entry) -> str:
    """State which optimizations are off, and why."""
    if entry.get("padded"):
        return (
            "unpadded batches, compiled layers, CUDA graphs and prefetched batches are off, "
            f"because {entry['padded']}"
        )
    if entry.get("messages"):
        return f"an optimization is off: {' '.join(entry['messages'])}"
    return "every optimization is on"


def share_of_products(entry: Entry, part: Part) -> float:
    """Divide the operations of real tokens by the time and by the rate of matrix products."""
    rate = 1e9 * part["product_gflops"][entry_precision(entry, part)]
    return float(entry["flops"] / entry_seconds(entry) / rate)


def entry_precision(entry: Entry, part: Part) -> str:
    """Return the precision of a measurement, or else the precision of its part."""
    return str(entry.get("precision", part["precision"]))


def entry_seconds(entry: Entry) -> float:
    """Return the median seconds of a step or a pass."""
    return float(median(entry["seconds"]))


def join_rounds(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Join the rounds of each system and batch size; it failed if it failed in all rounds."""
    joined: dict[tuple[Any, ...], dict[str, Any]] = {}
    for entry in entries:
        key = entry["who"], entry.get("batch")
        before = joined.get(key)
        if before is None or ("failed" in before and "failed" not in entry):
            joined[key] = {**entry, "seconds": [*entry.get("seconds", ())]}
        elif "failed" not in entry:
            before["seconds"] += entry["seconds"]
            before["memory"] = larger(before["memory"], entry["memory"])
    return [*joined.values()]


def _part_lines(part: Part) -> list[str]:
    """Lay out a part: its measurements, then its failures."""
    name, entries = part["part"], part["entries"]
    if name.startswith("peers-"):
        entries = join_rounds(entries)
    good = [entry for entry in entries if "failed" not in entry]
    failed = [entry for entry in entries if "failed" in entry]
    return [
        f"{name}: {part['device']}, {part['precision']}, {part['seconds']:.0f} seconds",
        *(align_columns(part_rows(part, good)) if good else ()),
        *(f"failed: {_name(entry)}: {entry['failed']}" for entry in failed),
        *([f"failed: {part['failed']}"] if "failed" in part else []),
    ]


def part_rows(part: Part, entries: Sequence[Entry], key: str = "") -> Rows:
    """
    List measurements of a part, for a terminal or a page.

    `key`: the only setting that names the measurements; all settings if empty.
    """
    if part["part"] == "correct":
        return [("what", "bounds", "distances"), *map(_correct_row, entries)]
    if part["part"] == "rates":
        return [("what", "measured"), *(row for entry in entries for row in _rates_rows(entry))]
    return _speed_rows(part, entries, key)


def _correct_row(entry: Entry) -> tuple[str, str, str]:
    """List the distances from the CPU's results."""
    if "failed" in entry:
        return _name(entry), entry["failed"], ""
    distances = (f"{name} {value:.1e}" for name, value in entry["distances"].items())
    return _name(entry), "within" if entry["equal"] else "OUTSIDE", ", ".join(distances)


def _rates_rows(entry: Entry) -> Rows:
    """List the peak rates of the device."""
    if "failed" in entry:
        return [(_name(entry), f"{NOT_MEASURED}: {entry['failed']}")]
    products, launches = entry["product_gflops"], entry["launch_seconds"]
    return [
        *((f"products in {name}", f"{rate:,.0f} GFLOP/s") for name, rate in products.items()),
        ("copies, read and written", f"{entry['copy_gb_per_second']:,.1f} GB/s"),
        *(
            (f"start of a kernel {by}", f"{1e6 * seconds:.1f} microseconds")
            for by, seconds in launches.items()
        ),
    ]


def _speed_rows(part: Part, entries: Sequence[Entry], key: str) -> Rows:
    """List tokens or sentences per second, compared with the first row of each batch size."""
    counts: Mapping[str, int] = next((e["counts"] for e in entries if "counts" in e), {})
    unit = "sentences" if "sentences" in counts else "target tokens"
    head = _HEADS.get(key, key)
    first: dict[Any, float] = {}
    rows: Rows = [
        (head, f"{unit}/s", "milliseconds", "share of products", "memory, GB", "times the first")
    ]
    for entry in entries:
        name = _name(entry, (key,) if key else _KEYS)
        if "failed" in entry:
            rows.append((name, NOT_MEASURED, "", "", "", entry["failed"]))
            continue
        seconds = entry_seconds(entry)
        measure = first.setdefault(entry.get("batch"), seconds)
        rows.append(
            (
                name,
                f"{entry['counts'][unit] / seconds:,.0f}",
                f"{1000 * seconds:,.1f}",
                f"{share_of_products(entry, part):.1%}",
                "" if entry["memory"] is None else f"{entry['memory'] / 1e9:.1f}",
                f"{measure / seconds:.2f}",
            )
        )
    return rows


def _name(entry: Entry, keys: Sequence[str] = _KEYS) -> str:
    """Name a measurement by its settings in `keys` and its batch size."""
    words = [str(entry[key]) for key in keys if key in entry]
    if "batch" in entry:
        words.append(f"batch {entry['batch']}")
    return ", ".join(words)


def graphs_gain(part: Part) -> dict[int, float]:
    """Compute the speedup of searches with CUDA graphs, for each batch size."""
    seconds = {
        (entry["batch"], entry["kernels"] == PLAIN): entry_seconds(entry)
        for entry in part["entries"]
        if "failed" not in entry
    }
    return {
        batch: plain / seconds[batch, False]
        for (batch, is_plain), plain in seconds.items()
        if is_plain and (batch, False) in seconds
    }
