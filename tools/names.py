"""
Refuse names without a meaning: `python tools/names.py`, a part of `make check`.

The variables, parameters and private functions in `FOLDERS` are checked. A variable or parameter
must not have a name in `REFUSED`. Fields of a class may have such a name, because the class
explains them. Parameters of methods such as `__eq__` may also have such a name. The name of a
private function must not be a participle without a noun, such as `_merged`. It must state what the
function does (`_merge`) or returns (`_kept_pairs`).
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = "src", "benchmarks", "tools"
REFUSED = {
    *("asked", "behind", "beside", "each", "found", "given", "held", "kept", "made", "one"),
    *("other", "said", "some", "told", "whole"),
}
PARTICIPLES = {
    *("begun", "bound", "built", "chosen", "done", "drawn", "gone", "held", "hidden", "known"),
    *("left", "lost", "made", "meant", "said", "seen", "sent", "shown", "spoken", "taken"),
    *("written",),
}
"""Irregular participles; regular ones end in “ed”."""
NOT_PARTICIPLES = {"deed", "embed", "feed", "seed", "speed"}


def main() -> int:
    """Print the file and line of each refused name; return 1 if there is any."""
    places = [
        f"{file.relative_to(ROOT)}:{line}: name what `{name}` holds or does"
        for folder in FOLDERS
        for file in sorted((ROOT / folder).rglob("*.py"))
        for line, name in refused(file.read_text(encoding="utf-8"))
    ]
    print("\n".join(places), end="\n" if places else "")
    return int(bool(places))


def refused(source: str) -> Iterator[tuple[int, str]]:
    """Find each variable, parameter and private function with a refused name."""
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
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if name.startswith("_") and is_participle(name.strip("_")):
                    yield node.lineno, name
                continue
            case _:
                continue
        if is_named and name in REFUSED:
            yield node.lineno, name


def is_participle(name: str) -> bool:
    """Return whether a name is a past participle without a noun."""
    is_regular = name.endswith("ed") and "_" not in name and name not in NOT_PARTICIPLES
    return is_regular or name in PARTICIPLES | REFUSED


if __name__ == "__main__":
    sys.exit(main())
