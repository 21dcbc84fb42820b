"""Rules for docstrings beyond those of ruff."""

import ast
import pkgutil
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from numpydoc.hooks.validate_docstrings import parse_config, process_file

import heedful
from heedful.cli.main import app

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "heedful"
# What a part of one's own fulfills: documented in full, like the names that `heedful` exports.
CONTRACTS = [
    "heedful.model.contracts.DecodingState",
    "heedful.model.contracts.Seq2Seq",
    "heedful.model.parts.Mixer",
    "heedful.model.parts.Network",
    "heedful.model.parts.PaddedNorm",
    "heedful.model.parts.TargetMixer",
    "heedful.search.stopping.StoppingRule",
]
Function = ast.FunctionDef | ast.AsyncFunctionDef


# Ruff's D102, but for overrides: they keep the contract that their base class documents.


def _undocumented(sources: Iterable[str]) -> list[str]:
    trees = [ast.parse(source) for source in sources if "class " in source]
    classes: dict[str, list[ast.ClassDef]] = defaultdict(list)
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(node)
    return [
        f"{node.name}.{method.name}"
        for tree in trees
        for node in _public_classes(tree)
        for method in _methods(node)
        if not method.name.startswith("_") and "overload" not in _decorators(method)
        if not ast.get_docstring(method) and method.name not in _documented_by_bases(node, classes)
    ]


def _public_classes(scope: ast.Module | ast.ClassDef) -> Iterator[ast.ClassDef]:
    for node in scope.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node
            yield from _public_classes(node)


def _methods(node: ast.ClassDef) -> list[Function]:
    return [item for item in node.body if isinstance(item, Function)]


def _decorators(function: Function) -> set[str]:
    return {ast.unparse(decorator).rsplit(".", 1)[-1] for decorator in function.decorator_list}


def _documented_by_bases(node: ast.ClassDef, classes: dict[str, list[ast.ClassDef]]) -> set[str]:
    names = {ast.unparse(base).split("[")[0].rsplit(".", 1)[-1] for base in node.bases}
    bases = [base for name in names for base in classes[name] if base is not node]
    return {
        method.name for base in bases for method in _methods(base) if ast.get_docstring(method)
    }.union(*(_documented_by_bases(base, classes) for base in bases))


def test_public_methods_are_documented_here_or_by_a_base_class():
    files = sorted(SOURCE.rglob("*.py"))
    assert _undocumented(file.read_text(encoding="utf-8") for file in files) == []


def test_a_method_without_a_docstring_is_found():
    source = '''
class Contract:
    def told(self):
        """Do it."""

class Keeps(Contract):
    def told(self):
        pass

    def bare(self):
        pass

class _Private:
    def bare(self):
        pass
'''
    assert _undocumented([source]) == ["Keeps.bare"]


def _published() -> Iterator[str]:
    for name in heedful.__all__:
        if name != "recipes":
            yield f"heedful.{name}"
    yield from CONTRACTS


def test_the_reference_lists_what_is_published_and_nothing_that_is_not_there():
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    listed = re.findall(r"^   (heedful\.\S+)$", page, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(_published()) <= set(listed)
    assert all(pkgutil.resolve_name(name).__doc__ for name in listed)


@pytest.mark.parametrize("name", sorted(_published()))
def test_what_is_published_is_documented_in_full(name):
    module, short = sys.modules[pkgutil.resolve_name(name).__module__], name.rpartition(".")[2]
    of_module = process_file(module.__file__, parse_config(ROOT))
    assert [finding for finding in of_module if short in finding[1].split(".")[1:2]] == []


def test_every_option_of_every_command_is_explained():
    commands = dict(_commands(typer.main.get_command(app).commands))
    assert {"train", "data get"} <= commands.keys()
    silent = [
        f"{name}: {parameter.name}"
        for name, command in commands.items()
        for parameter in command.params
        if not (parameter.help or "").strip()
    ]
    assert silent == []


def _commands(commands: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in commands.items():
        yield f"{prefix}{name}", command
        yield from _commands(getattr(command, "commands", {}), f"{prefix}{name} ")
