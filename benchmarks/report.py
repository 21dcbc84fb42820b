"""What every result carries: the machine, the versions, the commit, the commands."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from heedful.machine.devices import describe_machine

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"


def heedful(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command as a user would and return what it printed."""
    command = [sys.executable, "-m", "heedful", *map(str, arguments)]
    return subprocess.run(command, check=True, encoding="utf-8", stdout=subprocess.PIPE, **options)


def commit() -> str:
    """Name the commit that is measured; a changed work tree says so."""
    head = _git("rev-parse", "--short", "HEAD")
    return head + (" with changes" if _git("status", "--porcelain", "src") else "")


def machine() -> str:
    """Describe the machine in a line."""
    found = describe_machine()
    gibibytes = int(str(found["memory_bytes"])) / (1 << 30)
    gpus = ", ".join(map(str, found["gpus"])) if found["gpus"] else "no GPU"
    return (
        f"{found['processor']}, {found['cores']} cores, {gibibytes:.0f} GiB, {gpus}; "
        f"Python {found['python']}, torch {found['torch']}"
    )


def write(name: str, title: str, body: str, measured: str) -> Path:
    """Write a page of results."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    page = RESULTS / f"{name}.md"
    today = datetime.now(UTC).date().isoformat()
    page.write_text(
        f"# {title}\n\n{body.strip()}\n\nMachine: {machine()}.\n\nCommit {measured}, {today}.\n",
        encoding="utf-8",
    )
    return page


def _git(*arguments: str) -> str:
    """Ask git."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, encoding="utf-8"
    )
    return done.stdout.strip()
