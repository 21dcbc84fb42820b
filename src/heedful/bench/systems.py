"""
Who is measured: heedful, and other toolkits in environments of their own.

A peer is a folder with an environment (``.venv``) and a script (``bench.py``) that speaks the
protocol of `heedful.bench.process`: asked for ``{"task": "variants", "of": "train"}`` it
lists what it can do, asked for ``train`` or ``translate`` it does it and tells the seconds. heedful
answers the same requests, as a process like any other.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.bench.process import run_process
from heedful.errors import MeasurementFailed
from heedful.machine.benchmark import measured_rates
from heedful.machine.devices import resolve_device

OURS = "heedful"
"""What heedful is called among the contenders."""

Say = Callable[[str], None]

# The best counts, so that a machine that is busy for a moment still shows what it can do.
_RATE_SECONDS = 0.3


@dataclass(frozen=True)
class System:
    """
    Know how to measure one variant of one toolkit.

    Attributes
    ----------
    name : str
        Of the toolkit.
    command : tuple of str
        Starts its process.
    variant : str
        Which of its ways to do it.
    precision : str
        What that way computes with.

    Notes
    -----
    A process each, so memory is not that of an earlier variant.
    """

    name: str
    command: tuple[str, ...]
    variant: str
    precision: str

    @property
    def title(self) -> str:
        """Name and variant."""
        return f"{self.name} {self.variant}".strip()

    def run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """
        Let it do what is measured.

        Parameters
        ----------
        request : mapping
            With its `task`.

        Returns
        -------
        dict
            With `seconds`, `memory` and `versions`.

        Notes
        -----
        Adds the variant and its precision to the request.
        """
        asked = {**request, "variant": self.variant, "precision": self.precision}
        return run_process(self.command, asked, foreign=self.name != OURS)


@dataclass(frozen=True)
class Systems:
    """
    Hold who takes part and who does not.

    Attributes
    ----------
    systems : tuple of System
        heedful first, if it takes part.
    notes : tuple of str
        Why others do not.

    Notes
    -----
    A peer that is not installed is no error: the figures of heedful alone are of use.
    """

    systems: tuple[System, ...]
    notes: tuple[str, ...]


def own_system(precision: str, variant: str = "") -> System:
    """
    Describe heedful as a contender.

    Parameters
    ----------
    precision : str
        What it is to compute with; not ``auto``.
    variant : str, default ''
        Which of its ways this is.

    Returns
    -------
    System
        The program that is running now.

    Notes
    -----
    With the interpreter of this process.
    """
    return System(OURS, (sys.executable, "-m", __package__), variant, precision)


def find_systems(
    task: str,
    precision: str,
    peers: Path | None,
    only: Sequence[str],
    forced: bool,
    ways: Sequence[str] = (),
) -> Systems:
    """
    Find who can take part.

    Parameters
    ----------
    task : {'train', 'translate'}
        At what.
    precision : str
        Of heedful itself.
    peers : Path or None
        Folder with one folder for each peer; None for none.
    only : sequence of str
        Names that take part, or titles of single variants; all when empty.
    forced : bool
        Whether peers must compute with `precision`, too; else each in all its ways.
    ways : sequence of str, default ()
        Precisions that heedful has besides, which take part if nothing is forced.

    Returns
    -------
    Systems
        Who does, and who does not.

    Notes
    -----
    Peers are asked for their variants without loading anything heavy.
    """
    found: list[System] = []
    notes: list[str] = []
    for one in (own_system(precision), *(() if forced else (own_system(way, way) for way in ways))):
        if not only or {one.name, one.title} & {*only}:
            found.append(one)
    folders = sorted(peers.iterdir()) if peers is not None and peers.is_dir() else []
    for folder in folders:
        script, python = folder / "bench.py", folder / ".venv" / "bin" / "python"
        named = not only or any(name.split()[:1] == [folder.name] for name in only)
        if not script.exists() or not named:
            continue
        if not python.exists():
            notes.append(f"{folder.name} is not installed; `make peers` does it.")
            continue
        command = (str(python), str(script))
        try:
            listed = run_process(command, {"task": "variants", "of": task}, foreign=True)[
                "variants"
            ]
        except MeasurementFailed as error:
            notes.append(str(error))
            continue
        variants = [
            System(folder.name, command, each["name"], each["precision"])
            for each in listed
            if not forced or each["precision"] == precision
        ]
        found += [one for one in variants if not only or {one.name, one.title} & {*only}]
    return Systems(tuple(found), tuple(notes))


@dataclass(frozen=True)
class RoundRobin:
    """
    Hold what came of all turns.

    Attributes
    ----------
    answers : tuple of (System, dict)
        Seconds of all rounds together, the most memory of any.
    rates : dict of str to float
        GFLOP/s of matrix products by precision, the best that was seen between the rounds.
    notes : tuple of str
        Who failed, and what was said.

    Notes
    -----
    A machine that is shared gives its rate only now and then, so it is measured often; by this
    process, whose threads are as many as theirs (`Conditions.resolve`).
    """

    answers: tuple[tuple[System, dict[str, Any]], ...]
    rates: dict[str, float]
    notes: tuple[str, ...]


def run_in_turns(
    systems: Systems,
    request: Mapping[str, Any],
    rounds: int,
    say: Say,
    keep: Callable[[System], object] | None = None,
) -> RoundRobin:
    """
    Measure all contenders, one after the other, in several rounds.

    Parameters
    ----------
    systems : Systems
        Who takes part.
    request : mapping
        What each is asked; with `device`.
    rounds : int
        How often each has its turn.
    say : callable
        Told whose turn it is.
    keep : callable, optional
        Told who has just had a turn, before the next one has.

    Returns
    -------
    RoundRobin
        What came of them.

    Notes
    -----
    In turns, so that a slow minute of the machine is nobody's disadvantage. heedful itself must not
    fail.
    """
    answers: dict[System, dict[str, Any]] = {}
    notes: dict[System, str] = {}
    device = resolve_device(request["device"])
    rates = measured_rates(device, _RATE_SECONDS)
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
                answer["memory"] = max(before["memory"], answer["memory"])
            answers[system] = answer
            if keep is not None:
                keep(system)
        again = measured_rates(device, _RATE_SECONDS)
        rates = {precision: max(rate, again[precision]) for precision, rate in rates.items()}
    done = tuple((one, answer) for one, answer in answers.items() if one not in notes)
    return RoundRobin(done, rates, tuple(notes.values()))
