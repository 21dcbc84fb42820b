"""What tests of figures share."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

HOSTILE = ["$x$", "$\\frac{$", "_^", "\x00", "a\nb", "\ud800", "<&>", "%s {}", "é" * 500]


def words(svg: Path) -> list[str]:
    root = ElementTree.parse(svg).getroot()
    return ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]


def run_without(module: str, code: str) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.modules[{module!r}] = None\n{code}"
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "MPLBACKEND": "Agg"},
    )
