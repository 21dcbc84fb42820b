"""
Time of `make quickstart` in a clean clone, and startup time of `--help`.

    python -m benchmarks.quickstart

Writes `docs/results/quickstart.json` and builds the page from it.
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.report import ROOT, ResultPage, arguments
from heedful.experiments.page import code_block
from heedful.experiments.record import Record


def main() -> None:
    """Clone, install, train; then time the start of the command line."""
    options = arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "heedful"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        started = time.monotonic()
        subprocess.run(["make", ".venv/.for-use"], cwd=clone, check=True)
        installed = time.monotonic()
        printed = subprocess.check_output(["make", "quickstart"], cwd=clone, encoding="utf-8")
        ended = time.monotonic()
    output = re.sub(r"(?m)^make.*\n", "", printed).replace(f"{clone}/", "").strip()
    bleu = re.search(r"BLEU ([\d.]+) on", output)
    if bleu is None:
        raise SystemExit(f"the quickstart must print its BLEU, but it printed: {output}")
    measurements = {
        "install_seconds": installed - started,
        "seconds": ended - installed,
        "bleu": float(bleu[1]),
        "output": output,
        "help_seconds": min(_help_seconds() for _ in range(10)),
    }
    PAGE.keep("quickstart", measurements, options.commit)


def _help_seconds() -> float:
    """Return the seconds that the command line needs to print its help."""
    started = time.monotonic()
    subprocess.check_output([sys.executable, "-m", "heedful", "--help"])
    return time.monotonic() - started


def body(record: Record) -> str:
    """Format the measurements as Markdown."""
    measured = record.measurements
    return (
        "In a clean clone, `make quickstart` takes "
        f"{measured['install_seconds']:.0f} s to install and {measured['seconds']:.0f} s to run. "
        "The command prints lines such as these:\n\n"
        f"{code_block([measured['output']], 'text')}\n\n"
        f"In the fastest of ten runs, `heedful --help` takes {measured['help_seconds']:.2f} s from "
        "start to end of the process."
    )


PAGE = ResultPage("quickstart", "Quickstart", {"quickstart": body})


if __name__ == "__main__":
    main()
