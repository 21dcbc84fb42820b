"""Speed measurements of systems, and their tables."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from heedful.experiments.page import Rows, align_columns


def larger(first: int | None, second: int | None) -> int | None:
    """Return the larger peak memory of two rounds; None if it was not measured."""
    return None if first is None or second is None else max(first, second)


@dataclass(frozen=True)
class SpeedMeasurement:
    """
    Speed measurements of one system.

    Its speed is computed from the median, because on a shared machine the mean depends on other
    processes.
    """

    who: str
    """Toolkit and variant."""
    precision: str
    """Number format of the computation."""
    seconds: tuple[float, ...]
    """Seconds of each timed repetition, without any warm-up."""
    counts: Mapping[str, int]
    """The work of a repetition, such as ``{"sentences": 1000}``."""
    flops: float | None
    """Operations of a repetition, counted from the model's shapes without padding."""
    rate: float | None
    """GFLOP/s of matrix products on this machine in the same precision."""
    memory: int | None
    """Peak memory of the system's process, or on the GPU, in bytes; None if not measured."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further facts, such as versions, BLEU, and the share of lines equal to the first system's."""

    @property
    def median(self) -> float:
        """Median seconds of a repetition."""
        return statistics.median(self.seconds)

    @property
    def gflops(self) -> float | None:
        """Operations per second without padding, in units of 10^9."""
        return None if self.flops is None else self.flops / self.median / 1e9

    @property
    def share(self) -> float | None:
        """The system's operations per second as a share of the measured rate of matrix products."""
        return None if self.rate is None or self.gflops is None else self.gflops / self.rate

    def per_second(self, unit: str) -> float:
        """Compute the throughput in a unit, such as sentences, per second."""
        return self.counts[unit] / self.median

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values, with all repetitions, so that readers can judge the noise."""
        return {
            "who": self.who,
            "precision": self.precision,
            "seconds": {
                "median": self.median,
                "min": min(self.seconds),
                "max": max(self.seconds),
                "all": list(self.seconds),
            },
            "counts": dict(self.counts),
            "per_second": {unit: self.per_second(unit) for unit in self.counts},
            "gflops": self.gflops,
            "product_gflops": self.rate,
            "share": self.share,
            "memory": self.memory,
            **self.facts,
        }


@dataclass(frozen=True)
class SpeedReport:
    """A comparison of systems."""

    what: Mapping[str, Any]
    """The measured task: recipe, shapes, settings."""
    machine: Mapping[str, Any]
    """The result of `heedful.machine.devices.describe_machine`, with threads and product rates."""
    measurements: tuple[SpeedMeasurement, ...]
    """The measurements of all systems; heedful's comes first if it is measured."""
    notes: tuple[str, ...] = ()
    """Reasons why systems could not be measured."""
    compared: bool = True
    """Whether all measurements measure the same work."""

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values, as printed by `--json`."""
        return {
            "what": dict(self.what),
            "machine": dict(self.machine),
            "measurements": [measurement.to_dict() for measurement in self.measurements],
            "notes": list(self.notes),
        }

    def lines(self) -> list[str]:
        """Format as a table."""
        facts = [f"{name} {_format_fact(value)}" for name, value in self.what.items()]
        rows = speed_rows([measurement.to_dict() for measurement in self.measurements])
        if self.compared and len(self.measurements) > 1:
            # All systems did the same work, whatever their output.
            ours, *theirs = (measurement.median for measurement in self.measurements)
            times = (
                f"{self.measurements[0].who} is",
                "",
                *(f"{peer / ours:.2f} times as fast" for peer in theirs),
            )
            rows = [(*row, time) for row, time in zip(rows, times, strict=True)]
        extra = [
            f"{measurement.who}: {name} {_format_fact(value)}"
            for measurement in self.measurements
            for name, value in measurement.facts.items()
            if value != {}
        ]
        return [
            ", ".join(facts),
            f"products here: {_products(self.machine)}",
            *align_columns(rows),
            *extra,
            *(f"note: {note}" for note in self.notes),
        ]


def speed_rows(measurements: Sequence[Mapping[str, Any]]) -> Rows:
    """List the values of `SpeedMeasurement.to_dict` for each system, for a terminal or a page."""
    units = [f"{unit}/s" for unit in (measurements[0]["counts"] if measurements else ())]
    rows: Rows = [
        (
            *("", "precision", *units, "seconds (min-max)", "GFLOP/s", "share of products"),
            "peak memory, MB",
        )
    ]
    for measurement in measurements:
        gflops, share = measurement["gflops"], measurement["share"]
        rows.append(
            (
                measurement["who"],
                measurement["precision"],
                *(f"{rate:,.1f}" for rate in measurement["per_second"].values()),
                "{median:.3f} ({min:.3f}-{max:.3f})".format_map(measurement["seconds"]),
                "-" if gflops is None else f"{gflops:,.0f}",
                "-" if share is None else f"{share:.0%}",
                "-" if measurement["memory"] is None else f"{measurement['memory'] / 1e6:,.0f}",
            )
        )
    return rows


def _products(machine: Mapping[str, Any]) -> str:
    """Format the machine's measured product rates."""
    measured = machine.get("product_gflops", {})
    rates = ", ".join(f"{name} {rate:,.0f} GFLOP/s" for name, rate in measured.items())
    return f"{rates or 'not measured'}; {machine.get('threads')} threads on {machine.get('device')}"


def _format_fact(value: object) -> str:
    """Format a value of any type for the table."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_format_fact(inner)}" for name, inner in value.items())
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
