"""
Refuse local names that say nothing of what they hold: `python tools/names.py`, in `make check`.

Reads the variables and parameters of the package, its measurements and tools. Fields of a class are
allowed, because their class says whose they are, and so is `other` for the second operand of a
comparison or a sum, as in Python's own `__eq__`.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = "src", "benchmarks", "tools"
REFUSED = {
    *("asked", "each", "found", "given", "kept", "one", "other", "some", "told", "whole"),
}


def main() -> int:
    """Print each place; return 1 if there is any."""
    places = [
        f"{file.relative_to(ROOT)}:{line}: name what `{name}` holds"
        for folder in FOLDERS
        for file in sorted((ROOT / folder).rglob("*.py"))
        for line, name in refused(file.read_text(encoding="utf-8"))
    ]
    print("\n".join(places), end="\n" if places else "")
    return int(bool(places))


def refused(source: str) -> Iterator[tuple[int, str]]:
    """Find each variable and parameter with a refused name."""
    tree = ast.parse(source)
    operands = {
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("__")
        for argument in node.args.args
    }
    fields = {
        id(field.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                is_named = id(node) not in fields
            case ast.arg(arg=name):
                is_named = id(node) not in operands
            case _:
                continue
        if is_named and name in REFUSED:
            yield node.lineno, name


if __name__ == "__main__":
    sys.exit(main())
