"""Internal names of torch are used through one table, each where the table says."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from heedful.kernels.torch_internals import INTERNALS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "heedful"
TABLE = SOURCE / "kernels" / "torch_internals.py"

# Underscored names of other libraries and of Python itself.
NOT_TORCH = {
    "_asdict": "named tuples",
    "_exit": "os",
    "_fields": "named tuples",
    "_name": "ctypes.CDLL",
    "_replace": "named tuples",
    "_cache_references": "sacreBLEU",
    "_compute_score_from_stats": "sacreBLEU",
    "_extract_corpus_statistics": "sacreBLEU",
    "_ref_cache": "sacreBLEU",
}
# Arguments of public functions that torch does not document.
ARGUMENTS = {"grad_scale", "found_inf"}
# What stands in every file that names an internal of torch, and in few others.
MAY_BE_INTERNAL = re.compile(r"(?s)\btorch\b.*(\b_[a-zA-Z]|\bops\b)")
# Tests and benchmarks may look behind the scenes, each for a reason.
IN_TESTS = {
    ("tests/support/fork_server.py", "torch._dynamo"): "loaded early, for speed alone",
    ("tests/support/operations.py", "torch.ops"): "names of products, for torch's counter",
    ("tests/parity/test_operations.py", "torch.ops"): "names of products, for torch's counter",
    ("tests/parity/test_attention_parts.py", "torch.ops"): "attention that reads a dropout mask",
    ("tests/unit/evaluation/test_cost.py", "torch.ops"): "names of products, for torch's counter",
    ("tests/unit/exchange/pickled/test_safe_unpickler.py", "torch._utils"): "named in checkpoints",
    ("tests/unit/kernels/test_torch_internals.py", "torch._foreach_copy_"): "taken out of torch",
    (
        "tests/unit/kernels/test_attention_compiled.py",
        "torch._subclasses",
    ): "tensors without data",
}


def _own_names(trees: Iterable[ast.Module]) -> set[str]:
    """Names with an underscore that modules define: functions, classes, attributes, values."""
    names = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def _is_internal(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def internals_in(tree: ast.Module, own: set[str]) -> Iterator[str]:
    """Find what stands on names that torch does not document: paths, attributes, arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _is_of_torch(alias.name))
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from filter(_is_of_torch, names)
        elif isinstance(node, ast.Attribute):
            path = _path(node)
            if _is_of_torch(path) or (_is_internal(node.attr) and node.attr not in own):
                yield path
        elif isinstance(node, ast.keyword) and node.arg in ARGUMENTS:
            yield str(node.arg)
        elif isinstance(node, ast.Call) and _path(node.func) in ("getattr", "hasattr"):
            name = node.args[1]
            if (
                isinstance(name, ast.Constant)
                and _is_internal(name.value)
                and name.value not in own
            ):
                yield str(name.value)


def _path(node: ast.expr) -> str:
    """The names of a chain of attributes, joined by dots; what is computed has no name."""
    if isinstance(node, ast.Attribute):
        return f"{_path(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _is_of_torch(path: str) -> bool:
    root, *parts = path.split(".")
    return root == "torch" and (any(map(_is_internal, parts)) or parts[:1] == ["ops"])


def _module(file: Path) -> str:
    return ".".join(file.relative_to(SOURCE).with_suffix("").parts)


SOURCES = [file for file in sorted(SOURCE.rglob("*.py")) if file != TABLE]


def test_no_module_names_an_internal_of_torch():
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in SOURCES}
    own = _own_names(trees.values()) | NOT_TORCH.keys()
    assert [
        f"{file.relative_to(ROOT)}: {name}; list it in heedful.kernels.torch_internals and look it "
        "up by `internal`, with a plain way where torch lacks it"
        for file, tree in trees.items()
        for name in internals_in(tree, own)
    ] == []


def test_each_internal_is_used_where_the_table_says():
    used: dict[str, set[str]] = {name: set() for name in INTERNALS}
    for file in (*SOURCES, TABLE):
        text = file.read_text(encoding="utf-8")
        if not any(name in text for name in INTERNALS):  # parsing takes long
            continue
        tree = ast.parse(text)
        tree.body = [node for node in tree.body if not _is_the_table(node)]
        for name in _strings(tree):
            if name in used:
                used[name].add(_module(file))
    assert used == {name: {entry.module} for name, entry in INTERNALS.items()}


def _is_the_table(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "INTERNALS"


def _strings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_tests_and_benchmarks_name_internals_of_torch_for_a_reason():
    named = set()
    for folder in ("tests", "benchmarks", "docs"):
        for file in (ROOT / folder).rglob("*.py"):
            if ".venv" in file.parts:  # what `make peers` installs
                continue
            text = file.read_text(encoding="utf-8")
            if not MAY_BE_INTERNAL.search(text):  # parsing takes long
                continue
            for path in filter(_is_of_torch, internals_in(ast.parse(text), set())):
                short = ".".join(path.split(".")[:2])
                named.add((file.relative_to(ROOT).as_posix(), short))
    assert named == IN_TESTS.keys()


@pytest.mark.parametrize(
    "line",
    [
        "torch._foreach_sqrt_(x)",
        "torch.ops.aten.mm(x, y)",
        "y = torch.backends.cuda._anything",
        "from torch._C import Graph",
        "from torch.utils import _pytree",
        "import torch._dynamo",
        "tensor._anything_of_a_tensor",
        "getattr(torch, '_foreach_sqrt_')",
        "adamw(weights, grad_scale=x)",
    ],
)
def test_every_kind_of_use_is_seen(line):
    assert [*internals_in(ast.parse(line), set())]


@pytest.mark.parametrize(
    "line",
    ["torch.mm(x, x)", "self._cached", "x.__class__", "from torch import nn", "row._replace(a=1)"],
)
def test_other_names_are_left_alone(line):
    assert not [*internals_in(ast.parse(line), {"_cached", *NOT_TORCH})]
