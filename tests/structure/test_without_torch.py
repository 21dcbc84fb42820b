"""Text, settings and pictures work where torch is not installed."""

import json
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"

IMPORT_EACH = """
import importlib, json, sys
sys.modules["torch"] = None
failed = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception as error:
        failed[name] = repr(error)
print(json.dumps(failed))
"""


def _modules_below(folder: str) -> list[str]:
    files = (SOURCE / "heedful" / folder).rglob("*.py")
    return sorted(
        ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        for file in files
    )


def _failures_without_torch(*names: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_EACH, *names],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(SOURCE)},
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


PACKAGES = ("alignment", "cli", "config", "data", "serve", "text", "tokenization", "visualise")
MODULES = (
    "heedful",
    "heedful.errors",
    "heedful.exchange.ctranslate2.translator",
    "heedful.machine.memory",
    "heedful.machine.processor",
    "heedful.preparation.prepare",
    "heedful.search.settings",
    "heedful.search.phrases",
    "heedful.translation.translate",
)


def test_what_needs_no_torch_is_imported_where_torch_is_blocked():
    names = [name for package in PACKAGES for name in _modules_below(package)]
    assert {f"heedful.{package}" for package in PACKAGES} < set(names)
    names.remove("heedful.data.batching")
    assert _failures_without_torch(*MODULES, *names) == {}


def test_blocking_torch_does_block_it():
    assert "torch" in _failures_without_torch("heedful.data.batching")["heedful.data.batching"]
