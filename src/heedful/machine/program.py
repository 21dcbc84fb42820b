"""Version and commit of the running program, for records."""

import json
import subprocess
from importlib import metadata
from pathlib import Path

from heedful._version import __version__

_SECONDS = 10.0


def describe_program() -> str:
    """Name the version, and the commit if it is known."""
    commit = _installed_commit() or _checkout_commit(Path(__file__).parents[3])
    return f"heedful {__version__}" + (f", commit {commit}" if commit else "")


def _installed_commit() -> str:
    """Read the commit that pip installed from a repository; empty otherwise."""
    try:
        record = json.loads(metadata.distribution("heedful").read_text("direct_url.json") or "{}")
        return str(record["vcs_info"]["commit_id"])
    except (metadata.PackageNotFoundError, ValueError, KeyError, TypeError):
        return ""


def _checkout_commit(root: Path) -> str:
    """Return the commit of a checkout; empty if there is no checkout or no git."""
    if not ((root / ".git").exists() and (root / "src" / "heedful").is_dir()):
        return ""
    try:
        done = subprocess.run(
            ["git", "-C", root, "rev-parse", "--short=12", "HEAD"],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
