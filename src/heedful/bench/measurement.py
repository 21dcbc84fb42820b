"""What was measured of whom, and how it is told."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class SpeedMeasurement:
    """
    Hold what one contender did.

    Attributes
    ----------
    who : str
        Toolkit and variant.
    precision : str
        What it computed with.
    seconds : tuple of float
        Of each repetition; the first, which warms up, is not among them.
    counts : dict of str to int
        What a repetition got through, such as ``{"sentences": 1000}``.
    flops : float, optional
        Operations that a repetition needs by the model's shapes, padding left out.
    rate : float, optional
        GFLOP/s of matrix products on this machine in that precision.
    memory : int
        Most bytes that its process held, or those of the GPU.
    facts : dict
        What else is to be told: versions, agreement, scores.

    Notes
    -----
    The median counts: on a shared machine a mean is a measure of the neighbours.
    """

    who: str
    precision: str
    seconds: tuple[float, ...]
    counts: Mapping[str, int]
    flops: float | None
    rate: float | None
    memory: int
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def median(self) -> float:
        """Seconds of a repetition."""
        return statistics.median(self.seconds)

    @property
    def gflops(self) -> float | None:
        """Needed operations a second, in units of 10^9."""
        return None if self.flops is None else self.flops / self.median / 1e9

    @property
    def share(self) -> float | None:
        """Part of the machine's measured product rate that was put to use."""
        return None if self.rate is None or self.gflops is None else self.gflops / self.rate

    def per_second(self, unit: str) -> float:
        """
        Tell how much was done in a second.

        Parameters
        ----------
        unit : str
            A key of `counts`.

        Returns
        -------
        float
            By the median.

        Notes
        -----
        Only real tokens and lines are counted, whatever a toolkit computes besides.
        """
        return self.counts[unit] / self.median

    def to_dict(self) -> dict[str, Any]:
        """
        Write it as plain values.

        Returns
        -------
        dict
            Ready for JSON, with everything that can be worked out.

        Notes
        -----
        All repetitions are kept, so that somebody else can judge the noise.
        """
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
    """
    Hold a whole comparison.

    Attributes
    ----------
    what : dict
        What was measured: recipe, shapes, settings.
    machine : dict
        As `heedful.machine.devices.describe_machine` gives it, with threads and product rates.
    measurements : tuple of SpeedMeasurement
        Ours first.
    notes : tuple of str, default ()
        Who could not take part, and why.
    compared : bool, default True
        Whether they did the same work.

    Notes
    -----
    What `heedful bench` prints.
    """

    what: Mapping[str, Any]
    machine: Mapping[str, Any]
    measurements: tuple[SpeedMeasurement, ...]
    notes: tuple[str, ...] = ()
    compared: bool = True

    def to_dict(self) -> dict[str, Any]:
        """
        Write it as plain values.

        Returns
        -------
        dict
            Ready for JSON.

        Notes
        -----
        What `--json` prints.
        """
        return {
            "what": dict(self.what),
            "machine": dict(self.machine),
            "measurements": [measurement.to_dict() for measurement in self.measurements],
            "notes": list(self.notes),
        }

    def lines(self) -> list[str]:
        """
        Write it as a table.

        Returns
        -------
        list of str
            Facts, rows and notes.

        Notes
        -----
        The last column says how many times as fast as that contender heedful is: all did the same
        work, whatever came out.
        """
        facts = [f"{name} {_said(value)}" for name, value in self.what.items()]
        rows = [self._head(), *map(self._row, self.measurements)]
        extra = [
            f"{measurement.who}: {name} {_said(value)}"
            for measurement in self.measurements
            for name, value in measurement.facts.items()
            if value != {}
        ]
        return [
            ", ".join(facts),
            f"products here: {_products(self.machine)}",
            *_aligned(rows),
            *extra,
            *(f"note: {note}" for note in self.notes),
        ]

    def _head(self) -> list[str]:
        """Name the columns."""
        units = [f"{unit}/s" for unit in (self.measurements[0].counts if self.measurements else ())]
        return [
            "",
            "precision",
            *units,
            "seconds (min-max)",
            "GFLOP/s",
            "share of products",
            "peak memory, MB",
            "heedful is" if self.compared and len(self.measurements) > 1 else "",
        ]

    def _row(self, one: SpeedMeasurement) -> list[str]:
        """Write what one contender did."""
        ours = self.measurements[0]
        times = one.median / ours.median
        return [
            one.who,
            one.precision,
            *(f"{one.per_second(unit):,.1f}" for unit in one.counts),
            f"{one.median:.3f} ({min(one.seconds):.3f}-{max(one.seconds):.3f})",
            "-" if one.gflops is None else f"{one.gflops:,.1f}",
            "-" if one.share is None else f"{one.share:.1%}",
            f"{one.memory / 1e6:,.0f}",
            f"{times:.2f} times as fast" if self.compared and one is not ours else "",
        ]


def _products(machine: Mapping[str, Any]) -> str:
    """Write what the machine was measured to do."""
    rates = machine.get("product_gflops", {})
    said = ", ".join(f"{name} {rate:,.0f} GFLOP/s" for name, rate in rates.items())
    return f"{said or 'not measured'}; {machine.get('threads')} threads on {machine.get('device')}"


def _said(value: object) -> str:
    """Write a fact."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_said(inner)}" for name, inner in value.items())
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Write columns, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number == 0 else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
