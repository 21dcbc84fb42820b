"""The tables of `heedful bench device`, and the sentence on the use of the device."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from heedful.bench.device import ALL_ON, PLAIN
from heedful.bench.measurement import align_columns

Record = Mapping[str, Any]
Entry = Mapping[str, Any]


def device_lines(records: Sequence[Record]) -> list[str]:
    """Lay out the records of all parts, and say which share of the device is used."""
    lines = [line for record in records for line in ["", *_part_lines(record)]]
    return [*lines[1:], "", verdict(records)]


def verdict(records: Sequence[Record]) -> str:
    """Say which share of the device a step uses, and which lever is off and why."""
    for record in records:
        for entry in record["entries"]:
            if entry.get("levers") == ALL_ON and "counts" in entry and "seconds" in entry:
                share = share_of_products(entry, record)
                return (
                    f"A step of {entry['recipe']} uses {share:.0%} of this device's rate of large "
                    f"{entry_precision(entry, record)} products; {_levers_off(entry)}."
                )
    return "No step was measured, so the share of this device that is used is not known."


def _levers_off(entry: Entry) -> str:
    """Say which lever is off, and why."""
    if entry.get("padded"):
        return (
            "unpadded batches, compiled layers, graphs and batches ahead are off, because "
            f"{entry['padded']}"
        )
    if entry.get("messages"):
        return f"a lever is off: {' '.join(entry['messages'])}"
    return "every lever is on"


def share_of_products(entry: Entry, record: Record) -> float:
    """Divide the operations that real tokens need by the time and the rate of products."""
    rate = 1e9 * record["product_gflops"][entry_precision(entry, record)]
    return float(entry["flops"] / entry_seconds(entry) / rate)


def entry_precision(entry: Entry, record: Record) -> str:
    """Return the precision of a measurement, or else the precision of its part."""
    return str(entry.get("precision", record["precision"]))


def entry_seconds(entry: Entry) -> float:
    """Return the median seconds of a step or a pass."""
    return float(median(entry["seconds"]))


def join_rounds(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Join the rounds of each system and batch, and keep a failure of any round."""
    joined: dict[tuple[Any, ...], dict[str, Any]] = {}
    for entry in entries:
        key = entry["who"], entry.get("batch")
        before = joined.setdefault(key, {**entry, "seconds": []})
        before["seconds"] = [*before["seconds"], *entry.get("seconds", ())]
        if "failed" in entry:
            before["failed"] = entry["failed"]
    return [*joined.values()]


def _part_lines(record: Record) -> list[str]:
    """Lay out a part: its measurements, then its failures."""
    part, entries = record["part"], record["entries"]
    if part.startswith("peers-"):
        entries = join_rounds(entries)
    good = [entry for entry in entries if "failed" not in entry]
    failed = [entry for entry in entries if "failed" in entry]
    rows = {"correct": _correct_rows, "rates": _rates_rows}.get(part, _speed_rows)(record, good)
    return [
        f"{part}: {record['device']}, {record['precision']}, {record['seconds']:.0f} seconds",
        *(align_columns(rows) if rows else ()),
        *(f"failed: {_name(entry)}: {entry['failed']}" for entry in failed),
        *([f"failed: {record['failed']}"] if "failed" in record else []),
    ]


def _correct_rows(record: Record, entries: Sequence[Entry]) -> list[list[str]]:
    """List distances from the processor."""
    del record
    return [
        [
            _name(entry),
            "equal" if entry["equal"] else "NOT EQUAL",
            ", ".join(f"{name} {value:.2g}" for name, value in entry["distances"].items()),
        ]
        for entry in entries
    ]


def _rates_rows(record: Record, entries: Sequence[Entry]) -> list[list[str]]:
    """List the limits of the device."""
    del record
    return [
        [name, f"{value:.4g}"]
        for entry in entries
        for name, value in (
            *((f"{kind} GFLOP/s", rate) for kind, rate in entry["product_gflops"].items()),
            ("copy GB/s", entry["copy_gb_per_second"]),
            *((f"seconds to start a kernel {by}", s) for by, s in entry["launch_seconds"].items()),
        )
    ]


def _speed_rows(record: Record, entries: Sequence[Entry]) -> list[list[str]]:
    """List tokens or sentences a second, compared with the first row of each batch."""
    if not entries:
        return []
    unit = "sentences" if "sentences" in entries[0]["counts"] else "target tokens"
    first: dict[Any, float] = {}
    rows = [["", f"{unit}/s", "milliseconds", "share of products", "memory, MB", "times"]]
    for entry in entries:
        seconds = entry_seconds(entry)
        measure = first.setdefault(entry.get("batch"), seconds)
        rows.append(
            [
                _name(entry),
                f"{entry['counts'][unit] / seconds:,.0f}",
                f"{1000 * seconds:,.2f}",
                f"{share_of_products(entry, record):.1%}",
                f"{entry['memory'] / 1e6:,.0f}",
                f"{measure / seconds:.2f}",
            ]
        )
    return rows


def _name(entry: Entry) -> str:
    """Name a measurement by its differing settings."""
    keys = ("recipe", "what", "who", "precision", "levers", "kernels")
    words = [str(entry[key]) for key in keys if key in entry]
    if "batch" in entry:
        words.append(f"batch {entry['batch']}")
    return ", ".join(words)


def graphs_gain(record: Record) -> dict[int, float]:
    """Compute how much faster graphs make searches, by the sentences of a batch."""
    seconds = {
        (entry["batch"], entry["kernels"] == PLAIN): entry_seconds(entry)
        for entry in record["entries"]
        if "failed" not in entry
    }
    return {
        batch: plain / seconds[batch, False]
        for (batch, is_plain), plain in seconds.items()
        if is_plain and (batch, False) in seconds
    }
