"""
Measure the size and the structure of this repository: `make house`.

    python tools/house.py           lines by package, circles, files of a step; fails if over budget
    python tools/house.py --write   set each budget in tools/budgets.toml to today's value

How lines are counted
    A code line holds at least one token that is neither a comment nor part of a docstring. A
    docstring line belongs to the docstring of a module, class or function, or to a string that
    describes the field above it. A comment line holds only a comment. Blank lines are not counted.
    In C and JavaScript, code and comment lines are counted by the same rule.

Which lines a step runs
    A small model is trained, and it translates, both in this process and on one thread. MARKS names
    a function that runs once in each step. Each line of `heedful` that runs between the second and
    the third call of this function counts as part of the step: this is one full iteration of the
    loop. Lines are recorded by `sys.settrace`, because `sys.monitoring` needs Python 3.12.

Which imports count
    Every `import` counts, at the top, inside a function, or under TYPE_CHECKING. Circles are
    import cycles: the strongly connected components of modules. Circles of packages are found in
    the same way. A task has parts in several layers, so each of its modules counts as a package.

Budgets
    tools/budgets.toml limits the code lines of each package and of the Transformer alone, the
    number of circles, the files of a step, and the code lines of each of these files. A test
    enforces the limits (tests/structure/test_house.py). A commit that raises a limit must give the
    reason.
"""

import argparse
import ast
import io
import re
import sys
import tempfile
import threading
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import heedful
from heedful.data.toy_grammar.corpus import write_grammar_text

ROOT = Path(__file__).resolve().parent.parent
BUDGETS = ROOT / "tools" / "budgets.toml"
SOURCE = ROOT / "src" / "heedful"

# What is counted: the packages of the wheel, and the folders around them.
AROUND = ("benchmarks", "docs", "tests", "tools")

# The function of `heedful` that runs once in each step.
MARKS = {
    "training step": ("training/trainer.py", "Trainer._update"),
    "beam step": ("search/step.py", "extend"),
}

# The modules of the Transformer alone, from ids to probabilities, without kernels, other families
# and the interfaces to them.
TRANSFORMER = [
    "attention",
    "layout",
    "kv_cache",
    "feed_forward",
    "residual",
    "layer_config",
    "layers",
    "embedding",
    "encoder_decoder",
    "transformer",
]


class Lines(NamedTuple):
    """Counts of one or more files."""

    files: int = 0
    code: int = 0
    docstrings: int = 0
    comments: int = 0

    def __add__(self, more: tuple[int, ...]) -> "Lines":  # type: ignore[override]
        return Lines(*(a + b for a, b in zip(self, more, strict=True)))


# Lines


def docstring_lines(tree: ast.Module) -> set[int]:
    """Find the lines of docstrings, including strings that describe the field above them."""
    lines: set[int] = set()
    blocks: list[ast.AST] = [tree]
    for block in blocks:  # grows: expressions, most of a tree, hold no statements
        blocks.extend(node for node in ast.iter_child_nodes(block) if hasattr(node, "body"))
        body = getattr(block, "body", None)
        for statement in body if isinstance(body, list) else []:
            if (
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
            ):
                lines.update(range(statement.lineno, (statement.end_lineno or 0) + 1))
    return lines


@cache
def tree_of(text: str) -> ast.Module:
    """Parse the text of a Python file."""
    return ast.parse(text)


def code_lines(text: str) -> tuple[set[int], set[int], set[int]]:
    """Find the code, docstring and comment lines of a Python file."""
    described = docstring_lines(tree_of(text))
    written = {
        number: line.lstrip()
        for number, line in enumerate(text.split("\n"), start=1)
        if number not in described and line.strip()
    }
    if any('"""' in line or "'''" in line for line in written.values()):
        code, comments = _token_lines(text)  # slow, but a string may hold empty lines and hashes
        code -= described
        return code, described, comments - code - described
    comments = {number for number, line in written.items() if line.startswith("#")}
    return written.keys() - comments, described, comments


def _token_lines(text: str) -> tuple[set[int], set[int]]:
    """Find the lines of tokens and of comments, which may share lines."""
    code: set[int] = set()
    comments: set[int] = set()
    layout = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        lines = range(token.start[0], token.end[0] + 1)
        if token.type == tokenize.COMMENT:
            comments.update(lines)
        elif token.type not in layout:
            code.update(lines)
    return code, comments


@cache
def count_python(file: Path) -> Lines:
    """Count a Python file."""
    return Lines(1, *map(len, code_lines(file.read_text(encoding="utf-8"))))


def count_c_like(file: Path) -> Lines:
    """Count a file in C or JavaScript."""

    def newlines(comment: re.Match[str]) -> str:
        return "\n" * comment[0].count("\n")

    text = file.read_text(encoding="utf-8")
    total = sum(bool(line.strip()) for line in text.splitlines())
    bare = re.sub(r"/\*.*?\*/|^\s*//[^\n]*", newlines, text, flags=re.S | re.M)
    code = sum(bool(line.strip()) for line in bare.splitlines())
    return Lines(1, code, 0, total - code)


def packages() -> Iterator[tuple[str, list[Path]]]:
    """List the packages with their Python files; modules outside packages belong to `heedful`."""
    top = sorted(SOURCE.glob("*.py"))
    yield "heedful", top
    for folder in sorted(path for path in SOURCE.iterdir() if path.is_dir()):
        if files := sorted(folder.rglob("*.py")):
            yield f"heedful/{folder.name}", files
    for name in AROUND:
        files = (file for file in sorted((ROOT / name).rglob("*.py")) if ".venv" not in file.parts)
        yield name, list(files)


def count_packages() -> dict[str, Lines]:
    """Count every package."""
    counts = {}
    for name, files in packages():
        counts[name] = sum(map(count_python, files), Lines())
    return counts


def count_compiled() -> dict[str, Lines]:
    """Count the files in other languages."""
    counts: dict[str, Lines] = defaultdict(Lines)
    for language, patterns in (("C", ("*.c", "*.h")), ("JavaScript", ("*.js",))):
        for pattern in patterns:
            for file in SOURCE.rglob(pattern):
                if file.stat().st_size < 200_000:  # larger files are generated
                    counts[language] += count_c_like(file)
    return counts


# Imports


def modules() -> dict[str, Path]:
    """List the modules of the wheel and of `benchmarks` by dotted name."""
    names = {}
    for base, folder in ((ROOT / "src", SOURCE), (ROOT, ROOT / "benchmarks")):
        for file in folder.rglob("*.py"):
            if ".venv" not in file.parts:
                parts = file.relative_to(base).with_suffix("").parts
                names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return names


def imports_of(file: Path, known: dict[str, Path]) -> set[str]:
    """List the known modules that a file imports."""
    imported: set[str] = set()
    for node in ast.walk(tree_of(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                imported.add(name if name in known else node.module)
    return imported & known.keys()


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """List the strongly connected components of more than one node (Tarjan's algorithm)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    components: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = lowest[node] = len(order)
        stack.append(node)
        for target in graph[node]:
            if target not in order:
                visit(target)
                lowest[node] = min(lowest[node], lowest[target])
            elif target in stack:
                lowest[node] = min(lowest[node], order[target])
        if lowest[node] == order[node]:
            start = stack.index(node)
            component = stack[start:]
            del stack[start:]
            if len(component) > 1:
                components.append(sorted(component))

    sys.setrecursionlimit(10_000)
    for node in sorted(graph):
        if node not in order:
            visit(node)
    return sorted(components)


def module_graph() -> dict[str, set[str]]:
    """Map each module to its imports; the `__init__` of a package has the package's name."""
    known = modules()
    return {name: imports_of(file, known) - {name} for name, file in known.items()}


def package_of(module: str) -> str:
    """Name the package of a module; each module of a task counts as a package."""
    if module.startswith("heedful.tasks."):
        return module
    return ".".join(module.split(".")[:2])


def package_graph(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Merge the modules of each package; the public package `heedful` itself is left out."""
    packages: dict[str, set[str]] = defaultdict(set)
    for module, targets in graph.items():
        if module == "heedful" or not module.startswith("heedful"):
            continue
        packages[package_of(module)].update(
            package_of(target) for target in targets if target.startswith("heedful.")
        )
    for name, targets in list(packages.items()):
        targets.discard(name)
        for target in targets:
            packages.setdefault(target, set())
    return packages


# What a step runs


@dataclass
class StepRecorder:
    """A recorder of the lines that run between the second and the third call of a function."""

    file: str
    function: str

    def __post_init__(self) -> None:
        self.calls = 0
        self.lines: dict[str, set[int]] = defaultdict(set)

    def global_trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Decide whether the lines of a call are recorded."""
        code = frame.f_code
        if not code.co_filename.startswith(str(SOURCE)):
            return None
        if code.co_filename == self.file and code.co_qualname == self.function:
            self.calls += 1
        # A frame that began before the recorded step may continue in it.
        return self.local_trace

    def local_trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Record a line."""
        if self.calls == 2 and event == "line":
            self.lines[frame.f_code.co_filename].add(frame.f_lineno)
        return self.local_trace

    def record(self, work: Callable[[], Any]) -> dict[Path, set[int]]:
        """Call `work`, and return the recorded lines by file."""
        threading.settrace(self.global_trace)
        sys.settrace(self.global_trace)
        try:
            work()
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
        if self.calls < 3:
            raise SystemExit(f"house: {self.function} was called {self.calls} times, not 3")
        return {Path(name): lines for name, lines in sorted(self.lines.items())}


def run_steps() -> dict[str, dict[Path, set[int]]]:
    """Train and translate briefly; return the lines that run in the second step of both."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_grammar_text(home / "text", (2_000, 20, 20))
        source, target = home / "text" / "train.en", home / "text" / "train.fr"
        recorders = {
            name: StepRecorder(str(SOURCE / file), function)
            for name, (file, function) in MARKS.items()
        }

        def train() -> None:
            heedful.train(
                "tiny",
                source=source,
                target=target,
                out=home / "run",
                settings=["train.steps=4", "train.precision=fp32", "train.threads=1"],
                quiet=True,
            )

        def translate() -> None:
            heedful.Translator.load(home / "run").translate("the big red dog")

        return {
            "training step": recorders["training step"].record(train),
            "beam step": recorders["beam step"].record(translate),
        }


# The report


def rows(table: Iterable[tuple[str, ...]]) -> str:
    """Lay out a table, with words aligned left and numbers aligned right."""
    table = list(table)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for row in table:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def read_budgets() -> dict[str, dict[str, int]]:
    """Read the budgets, by table."""
    return tomllib.loads(BUDGETS.read_text(encoding="utf-8"))


def write_budgets(measured: dict[str, dict[str, int]]) -> None:
    """Set the budgets to the measured values."""
    text = "# Upper limits, measured as tools/house.py describes.\n"
    for table, values in measured.items():
        text += f"\n[{table}]\n"
        text += "".join(f'"{name}" = {value}\n' for name, value in values.items())
    BUDGETS.write_text(text, encoding="utf-8")


def over_budget(
    measured: dict[str, dict[str, int]], budgets: dict[str, dict[str, int]]
) -> list[str]:
    """Describe each value above its budget or without one, and each budget without a value."""
    problems = []
    for table, values in measured.items():
        limits = budgets.get(table, {})
        words = table.replace("_", " ")
        for name, value in values.items():
            if name not in limits:
                problems.append(f"{name}: no budget of {words} in tools/budgets.toml")
            elif value > limits[name]:
                problems.append(f"{name}: {value:,} {words}; the budget is {limits[name]:,}")
        problems += [
            f"{name}: a budget of {words} without files" for name in limits if name not in values
        ]
    return problems


def report_lines(counts: dict[str, Lines], budgets: dict[str, int]) -> str:
    """Show lines by package."""
    table = [("package", "files", "code", "docstrings", "comments", "budget")]
    inside = sum((count for name, count in counts.items() if name.startswith("heedful")), Lines())
    shown = {**counts, "src, all": inside}
    for name, count in shown.items():
        budget = f"{budgets[name]:,}" if name in budgets else ""
        table.append((name, *(f"{value:,}" for value in count), budget))
    for name, count in count_compiled().items():
        table.append((name, *(f"{value:,}" for value in count), ""))
    return rows(table)


def report_step(name: str, lines: dict[Path, set[int]]) -> str:
    """Show the files whose lines a step runs."""
    table = [(name, "lines run", "code lines")]
    for file, numbers in lines.items():
        count = count_python(file)
        table.append((str(file.relative_to(SOURCE)), f"{len(numbers):,}", f"{count.code:,}"))
    run = sum(map(len, lines.values()))
    code = sum(count_python(file).code for file in lines)
    table.append((f"{len(lines)} files", f"{run:,}", f"{code:,}"))
    return rows(table)


def count_transformer() -> dict[Path, int]:
    """Count the code lines of the Transformer alone, by file."""
    files = [SOURCE / "model" / f"{name}.py" for name in TRANSFORMER]
    return {file: count_python(file).code for file in files}


def report_transformer(counts: dict[Path, int]) -> str:
    """Show the code lines of the Transformer alone."""
    table = [("the Transformer alone", "code lines")]
    for file, count in counts.items():
        table.append((str(file.relative_to(SOURCE)), f"{count:,}"))
    table.append((f"{len(counts)} files", f"{sum(counts.values()):,}"))
    return rows(table)


def report_circles(components: dict[str, list[list[str]]]) -> str:
    """Show circles of modules and of packages."""
    text = []
    for name, circles_ in components.items():
        text.append(f"circles of {name}: {len(circles_) or 'none'}")
        text += [f"  {len(circle)}: {', '.join(circle)}" for circle in circles_]
    return "\n".join(text)


def main() -> int:
    """Print the report; return 1 if a value is above its budget."""
    parser = argparse.ArgumentParser(description="Measure the repository.")
    parser.add_argument("--write", action="store_true", help="set the budgets to today's values")
    arguments = parser.parse_args()
    counts = count_packages()
    graph = module_graph()
    components = {"modules": circles(graph), "packages": circles(package_graph(graph))}
    steps, transformer = run_steps(), count_transformer()
    measured = {
        "code_lines": {name: count.code for name, count in counts.items()}
        | {"the Transformer alone": sum(transformer.values())},
        "circles": {name: len(circles_) for name, circles_ in components.items()},
        "files": {name: len(lines) for name, lines in steps.items()},
        "lines_of_a_file": {
            name: max(count_python(file).code for file in lines) for name, lines in steps.items()
        },
    }
    if arguments.write:
        write_budgets(measured)
    budgets = read_budgets()
    print(report_lines(counts, budgets["code_lines"]))
    print(f"\n{report_circles(components)}")
    for name, lines in steps.items():
        print(f"\n{report_step(name, lines)}")
    print(f"\n{report_transformer(transformer)}")
    problems = over_budget(measured, budgets)
    print("\n" + ("\n".join(problems) or "Everything is within its budget."))
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
