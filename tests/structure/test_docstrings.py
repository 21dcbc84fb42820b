"""Rules for docstrings beyond those of numpydoc and ruff."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import heedful
from heedful.cli.main import app

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "heedful"
# The published interface, besides the names that `heedful` exports; numpydoc checks these modules.
PUBLISHED = {
    "families.bytenet.model",
    "families.recurrent.decoder",
    "families.recurrent.encoder",
    "model.attention",
    "model.embedding",
    "model.encoder_decoder",
    "model.feed_forward",
    "model.layer_config",
    "model.layers",
    "model.layout",
    "model.output",
    "model.projections",
    "model.residual",
    "model.seq2seq",
    "model.transformer",
    "search.beam",
    "search.length",
    "search.settings",
    "search.stopping",
    "training.loss",
    "training.optimizer",
    "training.schedule",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


# Ruff's D102, but for overrides: they keep the contract that their base class documents.


def _undocumented(sources: Iterable[str]) -> list[str]:
    trees = [ast.parse(source) for source in sources]
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


# The page of the Python interface lists what is published, by hand.


def _published() -> Iterator[str]:
    for name in heedful.__all__:
        if name == "recipes":
            yield from _names_in("config.recipes")
        else:
            yield f"heedful.{name}"
    for module in PUBLISHED:
        for name in _names_in(module):
            if name.rsplit(".", 1)[-1] not in heedful.__all__:
                yield name


def _names_in(module: str) -> Iterator[str]:
    file = SOURCE / f"{module.replace('.', '/')}.py"
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
            yield f"heedful.{module}.{node.name}"


def test_the_reference_lists_the_published_interface():
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    listed = re.findall(r"^   (heedful\.\S+)$", page, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == set(_published())


@pytest.mark.parametrize("module", sorted(PUBLISHED))
def test_numpydoc_checks_the_published_modules(module):
    package, _, name = module.replace(".", "/").rpartition("/")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    published = re.search(r"^PUBLISHED := (.*?)\n\n", makefile, re.MULTILINE | re.DOTALL)
    assert published
    lists = re.findall(rf"{package}/%\.py,([^)]*)\)", published[1])
    assert any(name in names.split() for names in lists)


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
