"""
Count how many small faults the tests find: `python tools/mutants.py`.

A mutant is the package with one fault: an operator, a number or a condition of one module is
changed. Equally many mutants of each kind are drawn at random from src/heedful. With the same seed,
`--count 10` gives the first ten mutants of `--count 200`. The tests of the changed module run on
each mutant. A mutant is killed if a test fails, and survives if all tests pass.

    python tools/mutants.py --count 200 --seed 1
    python tools/mutants.py --count 200 --seed 1 --revision 1804b1e    an earlier commit

Which tests
    The tests of src/heedful/a/b.py are tests/unit/a/test_b*.py, or else all files in tests/unit/a.
    Without such a folder, they are the tests of the module `a`. Commands have tests in tests/cli.

Code without faults
    Annotations, texts, code under TYPE_CHECKING or in a script's last lines, and logging stay
    unchanged.

Where the tests run
    The tests run in a temporary git worktree of the revision, so that uncommitted changes do not
    count. The tests of a module first run without a fault. They must pass, or the mutant has no
    verdict. If its tests take ten times as long as without the fault, a mutant counts as killed.

Verdicts are appended to the file of `--records`, one per line. A run with the same commit and seed
continues after the last verdict.
"""

import argparse
import ast
import copy
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice, zip_longest
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path("src/heedful")
LOOPS = 10  # times the duration of the tests without a fault

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


class Change(NamedTuple):
    """A fault: `text` replaces the bytes of a module from `start` to `end`."""

    operator: str
    line: int
    start: int
    end: int
    text: str


class Mutant(NamedTuple):
    """A module with a fault."""

    module: str
    change: Change


# Changes


def changes_of(text: str) -> list[Change]:
    """List the faults that a module can have, in the order of its syntax tree."""
    lines = text.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def change(operator: str, old: ast.expr | ast.stmt, new: str) -> Change:
        assert old.end_lineno is not None and old.end_col_offset is not None
        start = starts[old.lineno - 1] + old.col_offset
        end = starts[old.end_lineno - 1] + old.end_col_offset
        return Change(operator, old.lineno, start, end, new)

    return [
        change(operator, old, new)
        for node in mutable_nodes(ast.parse(text))
        for operator, old, new in faults_of(node)
    ]


def mutable_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Walk through the parts of a syntax tree that can get a fault."""
    if is_left_out(node):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from mutable_nodes(child)


def is_left_out(node: ast.AST) -> bool:
    """Decide whether a part of a module gets no fault."""
    match node:
        case ast.If(test=ast.Name("TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            return True
        case ast.If(test=ast.Compare(left=ast.Name("__name__"))):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name("logging" | "logger" | "_log"))):
            return True
    return isinstance(node, ast.JoinedStr)  # Python 3.11 does not give the positions of its parts


Fault = tuple[str, ast.expr | ast.stmt, str]


def faults_of(node: ast.AST) -> Iterator[Fault]:
    """List the faults that a node can have: kind, replaced code, and new code."""
    match node:
        case ast.Compare(ops=operators):
            for place, comparison in enumerate(operators):
                changed = copy.copy(node)
                new = COMPARISONS[type(comparison)]()
                changed.ops = [*operators[:place], new, *operators[place + 1 :]]
                yield "comparison", node, in_parentheses(changed)
        case ast.BinOp(op=operator) if type(operator) in ARITHMETIC and not joins_text(node):
            changed_sum = copy.copy(node)
            changed_sum.op = ARITHMETIC[type(operator)]()
            yield "arithmetic", node, in_parentheses(changed_sum)
        case ast.BoolOp(op=connective, values=values):
            new_connective = ast.Or() if isinstance(connective, ast.And) else ast.And()
            yield "and, or", node, in_parentheses(ast.BoolOp(new_connective, values))
        case ast.Constant(value=bool(value)):
            yield "true, false", node, repr(not value)
        case ast.Constant(value=int(value) | float(value)) if value - 1 != value != value + 1:
            yield "number", node, f"({value + 1!r})"
            yield "number", node, f"({value - 1!r})"
        case ast.Raise():
            yield "raise", node, "pass"
        case ast.Call(args=[first, second], keywords=[]) if are_alike(first, second):
            swapped = ast.Call(node.func, [second, first], [])
            yield "arguments", node, in_parentheses(swapped)
    for condition in conditions_of(node):
        yield "condition", condition, f"(not ({ast.unparse(condition)}))"


def conditions_of(node: ast.AST) -> list[ast.expr]:
    """List the conditions of a node."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            return [test]
        case ast.comprehension(ifs=tests):
            return tests
    return []


def in_parentheses(node: ast.expr) -> str:
    """Write an expression in parentheses, so that it is valid anywhere."""
    return f"({ast.unparse(node)})"


def joins_text(node: ast.BinOp) -> bool:
    """Decide whether an operator joins texts; any other operator would fail in every test."""
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in (node.left, node.right)
    )


def are_alike(first: ast.expr, second: ast.expr) -> bool:
    """Decide whether two arguments can be swapped: both names, or constants of one type."""
    match first, second:
        case (ast.Name(), ast.Name()) | (ast.Attribute(), ast.Attribute()):
            return ast.dump(first) != ast.dump(second)
        case (ast.Constant(value=one), ast.Constant(value=two)):
            return type(one) is type(two) and one != two
    return False


def apply(text: str, change: Change) -> str:
    """Make a change to the text of a module."""
    content = text.encode()
    return (content[: change.start] + change.text.encode() + content[change.end :]).decode()


def draw(root: Path, seed: int, count: int) -> list[Mutant]:
    """Draw equally many mutants of each kind; a larger count extends the draw of a smaller one."""
    kinds: dict[str, list[Mutant]] = defaultdict(list)
    for path in sorted((root / SOURCE).rglob("*.py")):
        for change in changes_of(path.read_text(encoding="utf-8")):
            kinds[change.operator].append(Mutant(path.relative_to(root).as_posix(), change))
    generator = random.Random(seed)
    shuffled = [generator.sample(kinds[kind], len(kinds[kind])) for kind in sorted(kinds)]
    rounds = chain.from_iterable(zip_longest(*shuffled))
    return list(islice((mutant for mutant in rounds if mutant is not None), count))


# Tests


def tests_of(module: str, root: Path) -> list[str]:
    """List the files of the tests of a module."""
    path = Path(module).relative_to(SOURCE).with_suffix("")
    while True:
        in_cli = path.parts[0] == "cli"
        folder = root / "tests" / ("" if in_cli else "unit") / path.parent
        for pattern in (f"test_{path.name}*.py", "test_*.py"):
            if files := sorted(folder.glob(pattern)):
                return [file.relative_to(root).as_posix() for file in files]
        path = path.parent


def run_tests(root: Path, tests: list[str], limit: float | None = None) -> tuple[bool, float]:
    """Run tests until one fails; return whether all passed, and the seconds."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    began = time.monotonic()
    with subprocess.Popen(
        [*command, "-m", "not soak", *tests],
        cwd=root,
        env=environment(root, is_plain=limit is None),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            # Pytest ends with 5 if it finds no test, so none has failed.
            passed = process.wait(limit) in (0, 5)
        except subprocess.TimeoutExpired:
            passed = False
        finally:
            end_group(process.pid)
    return passed, time.monotonic() - began


def end_group(leader: int) -> None:
    """Kill the remaining processes of a process group."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def environment(root: Path, *, is_plain: bool) -> dict[str, str]:
    """Build the environment of tests: one thread, the package in the folder, no GPU."""
    return {
        **os.environ,
        "CI": "true",  # draws the same examples each time
        "CUDA_VISIBLE_DEVICES": "",
        "HEEDFUL_DATA": str((ROOT / os.environ.get("HEEDFUL_DATA", "../shared/data")).resolve()),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(root / "src"),
        # Compiled modules are stored only if they have no fault.
        "PYTHONDONTWRITEBYTECODE": "" if is_plain else "1",
    }


# Runs


def main() -> int:
    """Judge mutants, and print a table; return 1 if a mutant has no verdict."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--revision", default="HEAD")
    parser.add_argument("--records", type=Path, default=ROOT / "build" / "mutants.jsonl")
    options = parser.parse_args()
    commit = git("rev-parse", "--verify", f"{options.revision}^{{commit}}")
    options.records.parent.mkdir(parents=True, exist_ok=True)
    with worktree(commit) as root:
        mutants = draw(root, options.seed, options.count)
        records = judge_all(
            mutants, root, {"commit": commit, "seed": options.seed}, options.records
        )
    print("\n".join(report(records)))
    return int(any(record["verdict"] == "none" for record in records))


def git(*words: str) -> str:
    """Run git in this checkout."""
    command = ["git", *words]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """Check out a commit into a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "heedful"
        git("worktree", "add", "--detach", str(root), commit)
        try:
            yield root
        finally:
            git("worktree", "remove", "--force", str(root))


def judge_all(
    mutants: list[Mutant], root: Path, run: dict[str, Any], file: Path
) -> list[dict[str, Any]]:
    """Judge the mutants that have no record yet, and record each verdict."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    earlier = [record for record in map(json.loads, lines) if run.items() <= record.items()]
    by_number = {record["number"]: record for record in earlier}
    plain = {tuple(record["tests"]): record["plain_seconds"] for record in earlier}
    for number, mutant in enumerate(mutants, start=1):
        if number in by_number:
            continue
        record = {**run, "number": number, **judge(mutant, root, plain)}
        with file.open("a", encoding="utf-8") as output:
            output.write(json.dumps(record) + "\n")
        print(f"{number} of {len(mutants)}: {describe(record)}", flush=True)
        by_number[number] = record
    return [by_number[number] for number in range(1, len(mutants) + 1)]


def judge(mutant: Mutant, root: Path, plain: dict[tuple[str, ...], float | None]) -> dict[str, Any]:
    """Run the tests of a mutant; `plain`: seconds without a fault, None if tests fail."""
    tests = tests_of(mutant.module, root)
    if tuple(tests) not in plain:
        passed, seconds = run_tests(root, tests)
        plain[tuple(tests)] = seconds if passed else None
    limit, seconds, verdict = plain[tuple(tests)], 0.0, "none"
    path, change = root / mutant.module, mutant.change
    text = path.read_text(encoding="utf-8")
    if limit is not None:
        path.write_text(apply(text, change), encoding="utf-8")
        passed, seconds = run_tests(root, tests, LOOPS * limit)
        path.write_text(text, encoding="utf-8")
        verdict = "survived" if passed else "killed"
    return {
        "verdict": verdict,
        "module": mutant.module,
        "line": change.line,
        "operator": change.operator,
        "before": text.encode()[change.start : change.end].decode(),
        "after": change.text,
        "tests": tests,
        "plain_seconds": limit,
        "seconds": seconds,
    }


def describe(record: dict[str, Any]) -> str:
    """Describe a verdict in a line."""
    before, after = (shorten(record[name], 60, placeholder=" …") for name in ("before", "after"))
    place = f"{record['module']}:{record['line']}"
    return f"{record['verdict']:8} {place} {record['operator']}: {before} -> {after}"


def report(records: list[dict[str, Any]]) -> Iterator[str]:
    """Lay out the verdicts by kind of fault, and list the mutants that were not killed."""
    verdicts = ("killed", "survived", "none")
    counts = Counter((record["operator"], record["verdict"]) for record in records)
    yield f"\n{'':12}{'killed':>10}{'survived':>10}{'no verdict':>12}"
    for operator in sorted({record["operator"] for record in records}):
        numbers = [counts[operator, verdict] for verdict in verdicts]
        yield f"{operator:12}{numbers[0]:10}{numbers[1]:10}{numbers[2]:12}"
    totals = Counter(record["verdict"] for record in records)
    yield f"{'all':12}{totals['killed']:10}{totals['survived']:10}{totals['none']:12}\n"
    yield from (describe(record) for record in records if record["verdict"] != "killed")


if __name__ == "__main__":
    sys.exit(main())
