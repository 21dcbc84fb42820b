"""Text, settings and pictures work where torch is not installed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

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
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "package", ["alignment", "cli", "config", "data", "serve", "text", "tokenization", "visualise"]
)
def test_a_package_is_imported_where_torch_is_blocked(package):
    names = _modules_below(package)
    assert f"heedful.{package}" in names
    names = [name for name in names if name != "heedful.data.batch"]
    assert _failures_without_torch(*names) == {}


def test_the_front_door_is_imported_where_torch_is_blocked():
    names = ["heedful.exchange.ctranslate2.translator", "heedful.translation.translate"]
    names += ["heedful", "heedful.errors", "heedful.search.options", "heedful.search.phrases"]
    names += ["heedful.machine.memory", "heedful.machine.processor", "heedful.preparation.prepare"]
    assert _failures_without_torch(*names) == {}


def test_blocking_torch_does_block_it():
    assert "torch" in _failures_without_torch("heedful.data.batch")["heedful.data.batch"]
