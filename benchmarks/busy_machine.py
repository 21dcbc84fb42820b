"""
Training next to busy processes, with OpenMP's defaults and with heedful's settings.

    python -m benchmarks.busy_machine [--busy N] [--seconds S] [--rounds N]

Trains `tiny` on the grammar corpus with all cores, alone and next to N busy processes. The settings
take turns, for half an hour in total. Writes `docs/results/busy.json` and builds the page from it.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.parts import write_sides
from benchmarks.report import ResultPage, arguments, heedful
from benchmarks.training import chosen, text_files
from heedful.data.toy_grammar.corpus import split_pairs
from heedful.experiments.page import table
from heedful.experiments.record import Record
from heedful.machine.environment import SWITCH, WAITING, user_environment
from heedful.machine.processor import usable_cores

UNTOUCHED = f"Python, `{SWITCH}=0`"
PYTHON = "Python"
SHORT = "Python, `GOMP_SPINCOUNT=1000`"
COMMAND = "`heedful train`"
SETTINGS = ("train.precision=fp32", "train.steps=1000000", "train.checkpoint_steps=1000000")
# A training that completes no step in its time fails, because it writes no weights.
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
    parser = arguments(__doc__)
    parser.add_argument(
        "--busy", type=int, default=2 * usable_cores(), help="number of busy processes"
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="seconds of each training")
    parser.add_argument("--rounds", type=int, default=5, help="trainings of each kind")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        steps = measure(Path(folder), options.busy, options.seconds, options.rounds)
    load = {"cores": usable_cores(), "busy": options.busy, "seconds": options.seconds}
    PAGE.keep("busy", load | {"steps": steps}, options.commit)


def measure(
    folder: Path, busy: int, seconds: float, rounds: int
) -> dict[str, dict[str, list[int]]]:
    """Count the steps with each setting, alone and next to busy processes."""
    pairs, _ = split_pairs(15_000, 100, seed=1)
    files = text_files(write_sides(folder, {"train": pairs}))
    # encode the text only once, so that every training begins immediately
    heedful("data", "prepare", "tiny", *files, "--out", folder / "data")
    settings = [*SETTINGS, f"train.minutes={seconds / 60}"]
    steps: dict[str, dict[str, list[int]]] = {
        way: {"alone": [], "busy": []} for way in (UNTOUCHED, PYTHON, SHORT, COMMAND)
    }
    for number in range(rounds):
        for place, processes in (("alone", 0), ("busy", busy)):
            for way, counts in steps.items():
                out = folder / f"run-{number}-{place}-{[*steps].index(way)}"
                with busy_processes(processes):
                    train(way, folder / "data", out, settings)
                counts[place].append(count_steps(out))
                print(f"{way}, {place}: {counts[place][-1]:,} steps", flush=True)
    return steps


def train(way: str, data: Path, out: Path, settings: list[str]) -> None:
    """Train once, in an environment without the variables that this process has set."""
    environment = user_environment()
    if way == UNTOUCHED:
        environment[SWITCH] = "0"
    if way == SHORT:
        environment["GOMP_SPINCOUNT"] = "1000"
    if way == COMMAND:
        words = ("--data", data, "--out", out, *chosen(settings))
        heedful("train", "tiny", *words, env=environment)
        return
    request = json.dumps([str(data), str(out), settings])
    subprocess.run([sys.executable, "-c", PROGRAM, request], check=True, env=environment)


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep CPU cores busy within a `with` statement."""
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


def body(record: Record) -> str:
    """Format the measurements as Markdown."""
    measured = record.measurements
    untouched = measured["steps"][UNTOUCHED]["busy"]
    rows = [
        {"way": way, "times": _ratio(counts["busy"], untouched)}
        | {place: _steps(counts[place]) for place in ("alone", "busy")}
        for way, counts in measured["steps"].items()
    ]
    busy, rounds = measured["busy"], len(measured["steps"][PYTHON]["busy"])
    heads = f" | alone | next to {busy} busy processes | compared with `{SWITCH}=0`, busy"
    steps = table(heads, "{way} | {alone} | {busy} | {times}", rows)
    values = " and ".join(f"`{name}={value}`" for name, value in WAITING.items())
    return (
        f"The table shows how many training steps `tiny` takes in {measured['seconds']:g} seconds "
        f"on {measured['cores']} cores, alone and next to {busy} processes that compute without a "
        f"pause. The training runs take turns; each number of steps is the median of {rounds} "
        f"runs, with their range in parentheses.\n\n{steps}\n\n`import heedful` sets {values} "
        "before torch is imported; `heedful train` sets a tenth of this spin count. "
        "`HEEDFUL_OMP=0` keeps OpenMP's defaults, with which idle threads take cores from "
        "working threads ([more](../reference.md#on-a-busy-machine))."
    )


def _steps(counts: list[int]) -> str:
    """Format the median and the range of counts."""
    return f"{statistics.median(counts):,.0f} ({min(counts):,}-{max(counts):,})"


def _ratio(counts: list[int], untouched: list[int]) -> str:
    """Format the ratio of steps to the steps with OpenMP's defaults."""
    return f"{statistics.median(counts) / max(1, statistics.median(untouched)):,.1f}"


PAGE = ResultPage("busy", "On a busy machine", {"busy": body})


if __name__ == "__main__":
    main()
