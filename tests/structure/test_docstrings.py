"""What the docstrings must say beyond the rules of numpydoc and ruff."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from numpydoc.docscrape import NumpyDocString

from heedful.cli.main import app

SOURCE = Path(__file__).parents[2] / "src" / "heedful"
FILES = sorted(SOURCE.rglob("*.py"))
# The docstring of a command is its help page, where every option explains itself.
COMMANDS = [file for file in FILES if file.parent.name == "cli" and file.name != "main.py"]

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _name(file: Path) -> str:
    return str(file.relative_to(SOURCE))


# Every public function and method says in its Notes why it is as it is.


def _without_notes(source: str) -> list[str]:
    return [
        f"{name} (line {function.lineno})"
        for name, function in _public_functions(ast.parse(source))
        if not re.search(r"^Notes\n-----\n\S", ast.get_docstring(function) or "", re.MULTILINE)
    ]


def _public_functions(
    scope: ast.Module | ast.ClassDef, prefix: str = ""
) -> Iterator[tuple[str, Function]]:
    for node in scope.body:
        if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
            continue
        if isinstance(node, ast.ClassDef):
            yield from _public_functions(node, f"{prefix}{node.name}.")
        elif not _reads_like_an_attribute(node) and not _is_an_overload(node):
            yield f"{prefix}{node.name}", node


def _decorators(function: Function) -> set[str]:
    return {ast.unparse(decorator).rsplit(".", 1)[-1] for decorator in function.decorator_list}


def _reads_like_an_attribute(function: Function) -> bool:
    return bool(_decorators(function) & {"property", "cached_property", "setter"})


def _is_an_overload(function: Function) -> bool:
    return "overload" in _decorators(function)


@pytest.mark.parametrize("file", [file for file in FILES if file not in COMMANDS], ids=_name)
def test_public_functions_have_notes(file):
    assert _without_notes(file.read_text(encoding="utf-8")) == []


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


def test_a_function_without_notes_is_found():
    source = '''
def bare():
    """Do it."""

def told():
    """
    Do it.

    Notes
    -----
    Because.
    """

def _private():
    pass

class Thing:
    @property
    def size(self):
        """Number of parts."""

    def method(self):
        """
        Do it.

        Notes
        -----
        """
'''
    assert _without_notes(source) == ["bare (line 2)", "Thing.method (line 22)"]


# A data class has no written constructor, so numpydoc cannot tell its fields; this can.


def _fields_and_what_is_told(source: str) -> dict[str, tuple[list[str], list[str]]]:
    return {
        node.name: (_fields(node), _told(node))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef) and _is_a_record(node) and not node.name.startswith("_")
    }


def _is_a_record(node: ast.ClassDef) -> bool:
    marks = [ast.unparse(mark) for mark in [*node.decorator_list, *node.bases]]
    return any(re.match(r"(dataclasses[.])?dataclass\b|(typing[.])?NamedTuple\b", m) for m in marks)


def _fields(node: ast.ClassDef) -> list[str]:
    return [
        field.target.id
        for field in node.body
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and not field.target.id.startswith("_")
        and "ClassVar" not in ast.unparse(field.annotation)
        and "init=False" not in ast.unparse(field)
    ]


def _told(node: ast.ClassDef) -> list[str]:
    told = NumpyDocString(ast.get_docstring(node) or "")
    names = [entry.name for entry in told["Parameters"] + told["Attributes"]]
    return [name for entry in names for name in entry.split(", ")]


@pytest.mark.parametrize("file", FILES, ids=_name)
def test_data_classes_document_their_fields_in_order(file):
    records = _fields_and_what_is_told(file.read_text(encoding="utf-8"))
    wrong = {name: both for name, both in records.items() if both[0] != both[1]}
    assert wrong == {}, "fields, then what the docstring tells"


def test_a_field_that_is_not_told_is_found():
    source = '''
@dataclass(frozen=True)
class Pair:
    """
    Two sentences.

    Attributes
    ----------
    source : str
        One.
    goal : str
        The other.
    """

    source: str
    target: str
    _cache: dict = field(default_factory=dict, init=False)
'''
    assert _fields_and_what_is_told(source) == {"Pair": (["source", "target"], ["source", "goal"])}
