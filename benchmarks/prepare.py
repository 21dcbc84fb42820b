"""
Preparation of a million Europarl pairs, French-English, from compressed text to ids: time, memory.

    python -m benchmarks.prepare [FOLDER]

What is made lies in FOLDER (default: a temporary one). Writes `docs/results/prepare.json`, and what
is written from it.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import rewrite
from benchmarks.report import commit, keep

PAIRS = 1_000_000
PAIRS_A_MINUTE = 300_000
BYTES = 1_000_000_000
PLAIN = ("data.vocabulary_size=32000", "data.max_length=256")
CLEAN = (
    *PLAIN,
    "data.max_length_ratio=3",
    "data.min_script_share=0.5",
    "data.drop_duplicates=true",
)


@dataclass(frozen=True)
class TimedPreparation:
    """What one run of the command took."""

    what: str
    processes: int
    """Number of processes that encoded."""
    seconds: float
    processor_seconds: float
    peak: int
    """Peak bytes of all its processes together."""


def main() -> None:
    """Prepare with and without learning subwords, with one process and two, plain and cleaned."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="where to put what is made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        plain, clean = folder / "plain", folder / "clean"
        rows = [prepare("subwords and ids", plain, PLAIN, 2)]
        ids = [content(plain)]
        for processes in (1, 2):
            shutil.rmtree(plain / "data")
            rows.append(prepare("ids", plain, PLAIN, processes))
            ids.append(content(plain))
        prepare("subwords and ids, cleaned", clean, CLEAN, 2)
        shutil.rmtree(clean / "data")
        rows.append(prepare("ids, cleaned", clean, CLEAN, 2))
        report = json.loads((clean / "data" / "report.json").read_text("utf-8"))
    found = {
        "rows": [asdict(row) for row in rows],
        "text_bytes": text_bytes(),
        "kept": report["kept"],
        "rules": [
            {name: one[name] for name in ("rule", "dropped", "drops")} for one in report["rules"]
        ],
    }
    keep("prepare", found, commit())
    rewrite()
    print(body(found))
    if any(other != ids[0] for other in ids):
        raise SystemExit("the goal is the same bytes for any number of processes")
    for row in rows[1:]:  # once subwords are learned
        if row.processes == 2 and 60 * PAIRS / row.seconds < PAIRS_A_MINUTE:
            raise SystemExit(f"the goal is {PAIRS_A_MINUTE:,} pairs a minute: {row}")
        if row.peak >= BYTES:
            raise SystemExit(f"the goal is less than 1 GB: {row}")


def prepare(what: str, out: Path, settings: tuple[str, ...], processes: int) -> TimedPreparation:
    """Run `heedful data prepare` and watch it."""
    raw = Path(os.environ.get("HEEDFUL_DATA", "../shared/data")) / "europarl-fr-en"
    text = ["--source", raw / "train.0[0-9].fr.xz", "--target", raw / "train.0[0-9].en.xz"]
    chosen = [part for setting in settings for part in ("--set", setting)]
    if settings == CLEAN:
        chosen += ["--exclude", raw / "dev.fr.xz", "--exclude", raw / "dev.en.xz"]
    command = ["data", "prepare", "paper-base", *text, "--out", out, *chosen]
    command = [sys.executable, "-m", "heedful", *command, "--processes", processes]
    before, started = processor_seconds(), time.monotonic()
    with subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL) as process:
        watch = Watch(process.pid)
        watch.start()
        status = process.wait()
        seconds = time.monotonic() - started
        watch.join()
    if status:
        raise SystemExit(f"heedful data prepare ended with {status}")
    measured = TimedPreparation(what, processes, seconds, processor_seconds() - before, watch.peak)
    print(row(asdict(measured)), flush=True)
    return measured


class Watch(threading.Thread):
    """
    Add up the memory of a process and its children, twenty times a second.

    What they share is counted once for each, so the sum is an upper bound.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid = pid
        self.peak = 0

    def run(self) -> None:
        """Watch until the process has ended."""
        while sizes := [size for pid in family(self.pid) if (size := resident(pid))]:
            self.peak = max(self.peak, sum(sizes))
            time.sleep(0.05)


def family(pid: int) -> list[int]:
    """List a process and its children."""
    found = [pid]
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text("ascii").split())
    except OSError:
        pass  # it has just ended
    return found


def resident(pid: int) -> int:
    """Bytes that a process holds; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * 4096
    except OSError:
        return 0


def processor_seconds() -> float:
    """Seconds on the processor of everything that was started and has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def content(folder: Path) -> dict[str, bytes]:
    """Read the files of a folder that training reads."""
    names = ("source.ids", "source.offsets", "target.ids", "target.offsets", "meta.json")
    return {name: (folder / "data" / name).read_bytes() for name in names}


def text_bytes() -> int:
    """Bytes of the files that are read."""
    raw = Path(os.environ.get("HEEDFUL_DATA", "../shared/data")) / "europarl-fr-en"
    return sum(path.stat().st_size for path in raw.glob("train.0[0-9].??.xz"))


def row(one: dict[str, Any]) -> str:
    """Write a row of the table."""
    return (
        f"| {one['what']} | {one['processes']} | {one['seconds']:.1f} "
        f"| {60 * PAIRS / one['seconds']:,.0f} | {one['processor_seconds']:.1f} "
        f"| {one['peak'] / 1e6:,.0f} |"
    )


def body(found: dict[str, Any]) -> str:
    """Lay the figures out."""
    dropped = "\n".join(
        f"| {one['rule']} | {one['dropped']:,} | {one['drops']} |" for one in found["rules"]
    )
    table = "\n".join(map(row, found["rows"]))
    return (
        f"{PAIRS:,} pairs of Europarl French-English, {found['text_bytes'] / 1e6:.0f} MB of .xz "
        "files, to memory-mapped ids of 32,000 shared byte-pair subwords. Memory is what all "
        "processes held together at the worst moment, pages that they share counted for each.\n\n"
        "| what | processes | seconds | pairs a minute | processor seconds | peak memory, MB |\n"
        f"| --- | --- | --- | --- | --- | --- |\n{table}\n\n"
        f"The goals: {PAIRS_A_MINUTE:,} pairs a minute on two cores once subwords are learned, "
        "less than 1,000 MB; learning itself, the first row, reads up to a million lines "
        "into memory. The ids were the same to the byte in every run with the same "
        "settings.\n\n"
        f"Cleaning kept {found['kept']:,} pairs:\n\n"
        f"| rule | pairs dropped | dropped is a pair of which |\n| --- | --- | --- |\n{dropped}\n\n"
        "```sh\n"
        'heedful data prepare paper-base --source "train.0[0-9].fr.xz" \\\n'
        '    --target "train.0[0-9].en.xz" --out DIR '
        + " ".join(f"--set {setting}" for setting in PLAIN)
        + "\n```\n\n"
        "All of it is `python -m benchmarks.prepare`."
    )


if __name__ == "__main__":
    main()
