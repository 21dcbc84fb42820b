"""Plugins for tests, each a small file."""

import re
from pathlib import Path

from tests.support.pages import DOCS, blocks

HEAD = "from heedful import plugins\n"
SCHEDULE = f"""{HEAD}
def rate(schedule, step, decays):
    return schedule.peak

plugins.SCHEDULES.register("flat", rate)
"""
PAGE = DOCS / "howto" / "plugins.md"


def page_plugin(name: str) -> str:
    """The file that the how-to page writes under a name."""
    pattern = rf"cat > {re.escape(name)} <<'END'\n(.*?)^END$"
    for block in blocks(PAGE):
        if match := re.search(pattern, block.text, re.MULTILINE | re.DOTALL):
            return match[1]
    raise LookupError(name)


def write_plugin(folder: Path, text: str, name: str = "mine.py") -> Path:
    """Write a plugin."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
