"""The header of every result: machine, versions, commit, commands."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from heedful.machine.devices import describe_machine

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
HELD = "CT2_FORCE_CPU_ISA"
"""Set where `held_to_avx2.sh` runs a benchmark."""


def heedful(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command as a user would and return what it printed."""
    command = [sys.executable, "-m", "heedful", *map(str, arguments)]
    return subprocess.run(command, check=True, encoding="utf-8", stdout=subprocess.PIPE, **options)


def commit() -> str:
    """Name the commit that is measured; a changed work tree says so."""
    head = _git("rev-parse", "--short", "HEAD")
    return head + (" with changes" if _git("status", "--porcelain", "src", "benchmarks") else "")


def machine() -> str:
    """Describe the machine in a line."""
    found = describe_machine()
    gibibytes = int(str(found["memory_bytes"])) / (1 << 30)
    gpus = ", ".join(map(str, found["gpus"])) if found["gpus"] else "no GPU"
    held = "; held to AVX2 by benchmarks/held_to_avx2.sh" if HELD in os.environ else ""
    return (
        f"{found['processor']}, {found['cores']} cores, {gibibytes:.0f} GiB, {gpus}; "
        f"Python {found['python']}, torch {found['torch']}{held}"
    )


def keep(name: str, found: dict[str, Any], measured: str) -> None:
    """Store results in `docs/results/NAME.json`; every page and figure is written from it."""
    record = {
        "commit": measured,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "found": found,
    }
    store(name, record)


def store(name: str, record: dict[str, Any]) -> None:
    """Write a record with its header."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, indent=1, ensure_ascii=False)
    (RESULTS / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


def read(name: str) -> dict[str, Any]:
    """Read stored results."""
    record: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return record


def page(title: str, body: str, record: dict[str, Any]) -> str:
    """Lay a page of results out."""
    return (
        f"# {title}\n\n{body.strip()}\n\nMachine: {record['machine']}.\n\n"
        f"Commit {record['commit']}, {record['date']}.\n"
    )


def _git(*arguments: str) -> str:
    """Ask git."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, encoding="utf-8"
    )
    return done.stdout.strip()
