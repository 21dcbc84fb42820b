"""What the docstrings must say beyond the rules of numpydoc and ruff."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from heedful.cli.main import app

SOURCE = Path(__file__).parents[2] / "src" / "heedful"
# The published interface has the four NumPy sections; one line is enough for anything else.
PUBLISHED = [
    SOURCE / package / f"{name}.py"
    for package, names in {
        "model": [
            *("attention", "feed_forward", "residual", "layer_shape", "layers", "embedding"),
            *("transformer", "seq2seq", "output"),
        ],
        "training": ["loss", "schedule", "optimizer"],
        "search": ["beam", "length", "stopping"],
    }.items()
    for name in names
]

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _name(file: Path) -> str:
    return str(file.relative_to(SOURCE))


# Every published function and method says in its Notes why it is as it is.


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


@pytest.mark.parametrize("file", PUBLISHED, ids=_name)
def test_published_functions_have_notes(file):
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
