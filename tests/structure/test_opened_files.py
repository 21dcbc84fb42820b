"""
Files that others may have written are opened by `heedful.files`, which refuses pipes and devices.

A pipe makes whoever opens it wait, and a link to a device never ends.
"""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "heedful"
# Modules that open other files, and why these are ordinary.
OTHERS = {
    "machine/memory.py": "reads what the system writes",
    "machine/program.py": "reads what pip has recorded of its installation",
    "machine/processor.py": "reads what the system writes, and checks its own cache",
    "kernels/native/compile.py": "reads its own source and what it has compiled",
    "serve/page/__init__.py": "reads files of the package",
    "serve/static_files.py": "reads files of the package",
    "visualise/explorer.py": "reads files of the package",
    "text/compression.py": "reads text that `heedful.text.corpus` has checked",
    "bench/translate.py": "reads what it has written into a temporary folder",
}
_READS = {"read_text", "read_bytes"}


def reads(node: ast.AST) -> bool:
    """Whether a call reads a file by its path."""
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    if isinstance(called, ast.Attribute) and called.attr in _READS:
        return True
    builtin = isinstance(called, ast.Name) and called.id == "open"
    # Run.open and the like are not meant: a path is not a class and no module
    by_path = isinstance(called, ast.Attribute) and called.attr == "open"
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        by_path = by_path and called.value.id.islower() and called.value.id not in _MODULES
    if not builtin and not by_path:
        return False
    modes = [*node.args[builtin:], *(one.value for one in node.keywords if one.arg == "mode")]
    texts = [one.value for one in modes if isinstance(one, ast.Constant)]
    return not modes or any(str(text).startswith("r") for text in texts)


_MODULES = {"os", "gzip", "lzma", "tarfile", "webbrowser"}


def readers(source: str) -> list[int]:
    """List the lines of the calls that read."""
    if not any(word in source for word in ("open", *_READS)):  # without parsing, which takes long
        return []
    return [node.lineno for node in ast.walk(ast.parse(source)) if reads(node)]


def test_only_listed_modules_open_files_by_themselves():
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if lines := readers(path.read_text(encoding="utf-8")):
            found[str(path.relative_to(SOURCE))] = lines
    assert {name: lines for name, lines in found.items() if name not in OTHERS} == {}
    assert OTHERS.keys() <= found.keys(), "a module in the list opens nothing any more"


@pytest.mark.parametrize(
    "call",
    [
        "path.read_text()",
        "(folder / 'a').read_bytes()",
        "path.open()",
        "path.open('rb')",
        "(a / b).open(encoding='utf-8')",
        "open(path)",
        "open(path, mode='r')",
    ],
)
def test_what_reads_is_found(call):
    assert readers(call) == [1]


@pytest.mark.parametrize(
    "call",
    ["path.open('wb')", "open(path, 'a')", "Run.open(path)", "os.open(path, 0)", "read_within(p)"],
)
def test_what_does_not_is_not(call):
    assert readers(call) == []
