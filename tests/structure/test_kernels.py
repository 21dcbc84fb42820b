"""Kernels have one door, and only they use what torch does not promise."""

import ast
import tomllib
from pathlib import Path

from heedful.kernels.torch_internals import INTERNALS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "heedful"
KERNELS = SOURCE / "kernels"


def _contract() -> dict[str, list[str]]:
    """The import contract that holds the door shut."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    (door,) = [each for each in contracts if each["name"] == "Kernels have one door"]
    return door


def _modules(folder: Path) -> set[str]:
    """Modules and packages directly in a folder."""
    entries = [path for path in folder.iterdir() if not path.name.startswith("_")]
    packages = {path.name for path in entries if (path / "__init__.py").is_file()}
    return packages | {path.stem for path in entries if path.suffix == ".py"}


def test_the_contract_names_every_module_on_both_sides_of_the_door():
    inside = {f"heedful.kernels.{name}" for name in _modules(KERNELS) - {"api"}}
    outside = {f"heedful.{name}" for name in _modules(SOURCE) - {"kernels"}}
    assert {*_contract()["forbidden_modules"]} == inside
    assert {*_contract()["source_modules"]} == outside


def test_the_door_offers_only_what_is_used_outside():
    used = set()
    for file in SOURCE.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if KERNELS in file.parents or "heedful.kernels.api" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module == "heedful.kernels.api":
                used |= {alias.name for alias in node.names}
    door = ast.parse((KERNELS / "api.py").read_text(encoding="utf-8"))
    imports = [node for node in door.body if isinstance(node, ast.ImportFrom)]
    assert used == {alias.name for node in imports for alias in node.names}


def test_only_kernels_use_internals_of_torch():
    users = {entry.module for entry in INTERNALS.values()}
    assert {module for module in users if not module.startswith("kernels.")} == set()
