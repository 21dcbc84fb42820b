"""
The measured systems: heedful, and other toolkits in their own environments.

A peer is a folder with an environment (``.venv``) and a script (``bench.py``) that answers the
requests of `heedful.experiments.process`. The request ``{"task": "variants", "of": "train"}`` asks
for its variants. The requests ``train`` and ``translate`` run a variant and return the seconds.
heedful answers these two requests in a separate process.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.bench.measurement import larger
from heedful.bench.product_rates import measure_product_rates
from heedful.errors import MeasurementFailed
from heedful.experiments.process import run_process
from heedful.machine.devices import resolve_device

OURS = "heedful"
"""The name of heedful among the measured systems."""

Say = Callable[[str], None]

# Seconds to measure the product rate. The best rate is used, so a brief load does not lower it.
_RATE_SECONDS = 0.3


@dataclass(frozen=True)
class System:
    """A measured system: one variant of one toolkit."""

    name: str
    """Name of the toolkit."""
    command: tuple[str, ...]
    """Command that starts the system's process."""
    variant: str
    """The toolkit's variant."""
    precision: str
    """Number format of the variant."""
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables of the variant."""

    @property
    def title(self) -> str:
        """Name and variant."""
        return f"{self.name} {self.variant}".strip()

    def run(self, request: Mapping[str, Any], seconds: float | None = None) -> dict[str, Any]:
        """
        Send a measurement request with the variant and its precision.

        `seconds`: the maximum waiting time. Returns a result with `seconds`, `memory` and
        `versions`.
        """
        variant_request = {**request, "variant": self.variant, "precision": self.precision}
        foreign = self.name != OURS
        return run_process(self.command, variant_request, foreign, dict(self.variables), seconds)


@dataclass(frozen=True)
class Systems:
    """The measured systems, and the systems that are left out."""

    systems: tuple[System, ...]
    """The measured systems; heedful comes first if it is among them."""
    notes: tuple[str, ...]
    """Reasons why other systems are left out."""


def own_system(precision: str, variant: str = "") -> System:
    """Describe heedful as a system."""
    return System(OURS, (sys.executable, "-m", __package__), variant, precision)


def peer_steps_at_once(device: str) -> int:
    """Return how many steps of a peer are timed together; on a GPU several, like heedful's."""
    return 10 if "cuda" in device else 1


def find_systems(
    task: str,
    precision: str,
    peers: Path | None,
    only: Sequence[str],
    forced: bool,
    ways: Sequence[str] = (),
    python: str | None = None,
    device: str = "cpu",
) -> Systems:
    """
    Find the installed systems.

    `peers`: folder with one folder for each peer; None for no peers. `only`: names of systems or
    titles of single variants to measure; all if empty. `forced`: whether peers must also compute in
    `precision`; otherwise each peer runs in all its precisions, and heedful also in those of
    `ways`. `python`: the interpreter of peers without their own environment. `device`: the device
    of the measurement.

    Peers list their variants without importing large libraries.
    """
    systems: list[System] = []
    notes: list[str] = []
    for own in (own_system(precision), *(() if forced else (own_system(way, way) for way in ways))):
        if not only or {own.name, own.title} & {*only}:
            systems.append(own)
    folders = sorted(peers.iterdir()) if peers is not None and peers.is_dir() else []
    for folder in folders:
        script, own_python = folder / "bench.py", folder / ".venv" / "bin" / "python"
        named = not only or any(name.split()[:1] == [folder.name] for name in only)
        if not script.exists() or not named:
            continue
        if not own_python.exists() and python is None:
            notes.append(f"{folder.name} is not installed; `make peers` installs it.")
            continue
        command = (str(own_python) if own_python.exists() else str(python), str(script))
        request = {"task": "variants", "of": task, "device": device}
        try:
            listed = run_process(command, request, foreign=True)["variants"]
        except MeasurementFailed as error:
            notes.append(str(error))
            continue
        variants = [
            System(folder.name, command, variant["name"], variant["precision"])
            for variant in listed
            if not forced or variant["precision"] == precision
        ]
        systems += [peer for peer in variants if not only or {peer.name, peer.title} & {*only}]
    return Systems(tuple(systems), tuple(notes))


@dataclass(frozen=True)
class RoundRobin:
    """
    The results of all rounds.

    A shared machine does not always reach its full speed. So the rate of matrix products is
    measured between the rounds, in this process, with as many threads as the systems have.
    """

    answers: tuple[tuple[System, dict[str, Any]], ...]
    """Each system with its answer: the seconds of all rounds, and the largest peak memory."""
    rates: dict[str, float]
    """GFLOP/s of matrix products by precision, the best of the rates measured between rounds."""
    notes: tuple[str, ...]
    """Systems that failed, with their messages."""


def run_in_turns(
    systems: Systems,
    request: Mapping[str, Any],
    rounds: int,
    say: Say,
    keep: Callable[[System], object] | None = None,
) -> RoundRobin:
    """Measure all systems in turns, in several rounds."""
    # Systems take turns, so that a slow period of the machine affects all equally. A failure of a
    # peer becomes a note beside its earlier rounds; a failure of heedful is raised.
    answers: dict[System, dict[str, Any]] = {}
    notes: dict[System, str] = {}
    device = resolve_device(request["device"])
    with_int8 = any(system.precision == "int8" for system in systems.systems)
    rates = measure_product_rates(device, _RATE_SECONDS, with_int8)
    for number in range(rounds):
        for system in systems.systems:
            if system in notes:
                continue
            say(f"round {number + 1} of {rounds}: {system.title}")
            try:
                answer = system.run(request)
            except MeasurementFailed as error:
                if system.name == OURS:
                    raise
                notes[system] = f"{system.title}: {error}"
                continue
            if system in answers:
                before = answers[system]
                answer["seconds"] = before["seconds"] + answer["seconds"]
                answer["memory"] = larger(before["memory"], answer["memory"])
            answers[system] = answer
            if keep is not None:
                keep(system)
        again = measure_product_rates(device, _RATE_SECONDS, with_int8)
        rates = {precision: max(rate, again[precision]) for precision, rate in rates.items()}
    return RoundRobin(tuple(answers.items()), rates, tuple(notes.values()))
