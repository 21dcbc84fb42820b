"""
Training from Python beside busy processes, with OpenMP's own waiting and with heedful's.

    python -m benchmarks.busy_machine [--busy N] [--seconds S] [--rounds N]

Trains `tiny` on the embedded corpus with all cores, alone and beside N processes that compute, for
each way of waiting in turns: half an hour. Writes `docs/results/busy.json`, and what is
written from it.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.figures import rewrite
from benchmarks.report import commit, heedful, keep
from heedful.data.toy_grammar.corpus import split_pairs
from heedful.machine.environment import SWITCH, WAITING, user_environment
from heedful.machine.processor import usable_cores

TITLE = "On a busy machine"
UNTOUCHED = f"Python, `{SWITCH}=0`"
PYTHON = "Python"
SHORT = "Python, `GOMP_SPINCOUNT=1000`"
COMMAND = "`heedful train`"
SETTINGS = ("train.precision=fp32", "train.steps=1000000", "train.checkpoint_steps=1000000")
# A training that makes no step in its time fails, because it leaves no weights.
PROGRAM = """
import json, sys
from pathlib import Path
import heedful
data, out, settings = json.loads(sys.argv[1])
try:
    heedful.train("tiny", data=data, out=out, settings=settings, quiet=True)
except heedful.HeedfulError:
    if not Path(out, "config.json").exists() or Path(out, "checkpoints").exists():
        raise
"""
BUSY = "while True: pass"


def main() -> None:
    """Train in turns and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--busy", type=int, default=2 * usable_cores(), help="busy processes")
    parser.add_argument("--seconds", type=float, default=30.0, help="time of each training")
    parser.add_argument("--rounds", type=int, default=5, help="trainings of each kind")
    options = parser.parse_args()
    measured = commit()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), options.busy, options.seconds, options.rounds)
    keep("busy", found, measured)
    rewrite()
    print(body(found))


def measure(folder: Path, busy: int, seconds: float, rounds: int) -> dict[str, Any]:
    """Count the steps of each way of waiting, alone and beside busy processes."""
    data = prepare_text(folder)
    settings = [*SETTINGS, f"train.minutes={seconds / 60}"]
    steps: dict[str, dict[str, list[int]]] = {
        way: {"alone": [], "busy": []} for way in (UNTOUCHED, PYTHON, SHORT, COMMAND)
    }
    for number in range(rounds):
        for place, processes in (("alone", 0), ("busy", busy)):
            for way, counts in steps.items():
                out = folder / f"run-{number}-{place}-{[*steps].index(way)}"
                with busy_processes(processes):
                    train(way, data, out, settings)
                counts[place].append(count_steps(out))
                print(f"{way}, {place}: {counts[place][-1]:,} steps", flush=True)
    return {"cores": usable_cores(), "busy": busy, "seconds": seconds, "steps": steps}


def prepare_text(folder: Path) -> Path:
    """Encode the embedded corpus once, so that every training begins at once."""
    pairs, _ = split_pairs(15_000, 100, seed=1)
    files = []
    for side, (option, language) in enumerate((("--source", "en"), ("--target", "fr"))):
        file = folder / f"train.{language}"
        file.write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
        files += [option, file]
    heedful("data", "prepare", "tiny", *files, "--out", folder / "data")
    return folder / "data"


def train(way: str, data: Path, out: Path, settings: list[str]) -> None:
    """Train once, in an environment without what this process has set."""
    environment = user_environment()
    if way == UNTOUCHED:
        environment[SWITCH] = "0"
    if way == SHORT:
        environment["GOMP_SPINCOUNT"] = "1000"
    if way == COMMAND:
        chosen = [part for setting in settings for part in ("--set", setting)]
        heedful("train", "tiny", "--data", data, "--out", out, *chosen, env=environment)
        return
    request = json.dumps([str(data), str(out), settings])
    subprocess.run([sys.executable, "-c", PROGRAM, request], check=True, env=environment)


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep processors busy meanwhile."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def count_steps(run: Path) -> int:
    """Count the steps of a run by its last checkpoint."""
    return max(
        (int(place.name.partition("-")[2]) for place in run.glob("checkpoints/*")), default=0
    )


def body(found: dict[str, Any]) -> str:
    """Lay the figures out."""
    rows = "\n".join(
        f"| {way} | {_steps(counts['alone'])} | {_steps(counts['busy'])} "
        f"| {_ratio(counts['busy'], found['steps'][UNTOUCHED]['busy'])} |"
        for way, counts in found["steps"].items()
    )
    rounds = len(found["steps"][PYTHON]["busy"])
    values = " and ".join(f"`{name}={value}`" for name, value in WAITING.items())
    return (
        f"Steps that a training of `tiny` makes in {found['seconds']:g} seconds on "
        f"{found['cores']} cores, alone and beside {found['busy']} processes that compute without "
        f"a pause: the median of {rounds} trainings in turns, and their range.\n\n"
        f"| | alone | beside {found['busy']} | times `{SWITCH}=0` there |\n"
        f"| --- | --- | --- | --- |\n{rows}\n\n"
        f"`import heedful` sets {values} before torch is imported, the command with a tenth of "
        "the spins. `HEEDFUL_OMP=0` leaves OpenMP's own waiting: idle threads take cores from "
        "threads that work ([more](../reference.md#on-a-busy-machine)).\n\n"
        "All of it is `python -m benchmarks.busy_machine`."
    )


def _steps(counts: list[int]) -> str:
    """Write the median of some counts and their range."""
    return f"{statistics.median(counts):,.0f} ({min(counts):,}-{max(counts):,})"


def _ratio(counts: list[int], untouched: list[int]) -> str:
    """Write how many times the steps are those without heedful's waiting."""
    return f"{statistics.median(counts) / max(1, statistics.median(untouched)):,.1f}"


if __name__ == "__main__":
    main()
