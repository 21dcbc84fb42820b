"""
Time of `make quickstart` in a clean clone, and start time of `--help`.

    python -m benchmarks.quickstart

Writes `docs/results/quickstart.json`, and what is written from it.
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.figures import rewrite
from benchmarks.report import ROOT, commit, keep


def main() -> None:
    """Clone, install, train; then time the start of the command line."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "heedful"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        started = time.monotonic()
        subprocess.run(["make", ".venv/.for-use"], cwd=clone, check=True)
        installed = time.monotonic()
        done = subprocess.run(
            ["make", "quickstart"], cwd=clone, check=True, encoding="utf-8", stdout=subprocess.PIPE
        )
        ended = time.monotonic()
    shown = re.sub(r"(?m)^make.*\n", "", done.stdout).replace(f"{clone}/", "")
    bleu = re.search(r"BLEU ([\d.]+) on", shown)
    found = {
        "install_seconds": installed - started,
        "seconds": ended - installed,
        "bleu": float(bleu[1]) if bleu else None,
        "output": shown.strip(),
        "help_seconds": help_seconds(),
    }
    keep("quickstart", found, commit())
    rewrite()
    print(body(found))
    if bleu is None or float(bleu[1]) < 95 or "le gros chien rouge" not in shown:
        raise SystemExit("the goal is BLEU 95 and “le gros chien rouge”")
    if ended - installed > 180 or ended - started > 360:
        raise SystemExit("the goal is six minutes, three of them after the install")


def body(found: dict[str, Any]) -> str:
    """Lay the figures out."""
    return (
        f"`make quickstart` in a clean clone: {found['install_seconds']:.0f} s to install, "
        f"{found['seconds']:.0f} s from the installed program to the end. "
        "At the commit named below it printed:\n\n"
        f"```text\n{found['output']}\n```\n\n"
        f"`heedful --help`: {found['help_seconds']:.2f} s from start to end of the process, "
        "best of ten."
    )


def help_seconds() -> float:
    """Time the help page."""
    best = float("inf")
    for _ in range(10):
        started = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "heedful", "--help"], check=True, stdout=subprocess.DEVNULL
        )
        best = min(best, time.monotonic() - started)
    return best


if __name__ == "__main__":
    main()
