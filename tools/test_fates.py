"""
Record the fate of each test of an earlier commit: `python tools/test_fates.py`.

The tests of commit 1804b1e are compared with the tests of the working tree, and tests/fates.tsv is
written. A test is kept if its file still has a test with its name, and moved if another file has a
test with its name. If several files have such a test, the most similar test counts.
tools/test_fates.toml states the fate of all remaining tests: renamed, merged into other tests, or
deleted for a reason. If a test has no fate, or a fate names an unknown test, nothing is written and
the exit code is 1.
"""

import ast
import io
import re
import subprocess
import sys
import tarfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
BEFORE = "1804b1e"
BY_HAND = ROOT / "tools" / "test_fates.toml"
TABLE = ROOT / "tests" / "fates.tsv"

# The tables of tools/test_fates.toml; their values name tests, except for “deleted”.
FATES = ("renamed", "merged", "deleted")

# Tests by `file::name`.
Tests = dict[str, ast.FunctionDef]


class Fate(NamedTuple):
    """The fate of a test: the tests that replaced it, or the reason why it was deleted."""

    test: str
    fate: str
    places: tuple[str, ...]
    reason: str = ""


def main() -> int:
    """Write the table; return 1 if a test has no fate or a fate names no test."""
    before, now = tests_of(files_of(BEFORE)), tests_of(files_here())
    by_hand = read_fates(BY_HAND.read_text(encoding="utf-8"))
    fates = find_fates(before, now, by_hand)
    if problems := [*check(before, now, by_hand, fates)]:
        print(" ".join(problems), file=sys.stderr)
        return 1
    TABLE.write_text("".join(rows(fates)), encoding="utf-8")
    counts = Counter(fate.fate for fate in fates)
    print(", ".join(f"{count:,} {fate}" for fate, count in counts.most_common()))
    return 0


def files_of(revision: str) -> Iterator[tuple[str, str]]:
    """Read the names and texts of the test files of a revision."""
    command = ["git", "archive", revision, "tests"]
    packed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            content = archive.extractfile(member) if is_of_tests(member.name) else None
            if content is not None:
                yield member.name, content.read().decode("utf-8")


def files_here() -> Iterator[tuple[str, str]]:
    """Read the names and texts of the test files of the working tree."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if is_of_tests(name):
            yield name, path.read_text(encoding="utf-8")


def is_of_tests(name: str) -> bool:
    """Return whether pytest looks for tests in a file."""
    return bool(re.search(r"/test_\w+\.py$", name))


def tests_of(files: Iterable[tuple[str, str]]) -> Tests:
    """Find the test functions of files."""
    return {
        f"{name}::{node.name}": node
        for name, text in files
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test")
    }


def read_fates(text: str) -> list[Fate]:
    """Read tools/test_fates.toml: a table for each fate, with a line for each test."""
    tables = tomllib.loads(text)
    fates = []
    for fate in FATES:
        for test, value in tables.get(fate, {}).items():
            if fate == "deleted":
                fates.append(Fate(test, fate, (), value))
            else:
                fates.append(Fate(test, fate, (value,) if isinstance(value, str) else (*value,)))
    return fates


def find_fates(before: Tests, now: Tests, by_hand: Iterable[Fate]) -> list[Fate]:
    """Find the fates of the earlier tests; fates from tools/test_fates.toml come first."""
    known = {fate.test: fate for fate in by_hand}
    by_name: dict[str, list[str]] = defaultdict(list)
    for test in now:
        by_name[name_of(test)].append(test)
    fates = []
    for test, function in before.items():
        if test in known:
            fates.append(known[test])
        elif test in now:
            fates.append(Fate(test, "kept", (test,)))
        elif places := by_name[name_of(test)]:
            nearest = max(places, key=lambda place: likeness(function, now[place]))
            fates.append(Fate(test, "moved", (nearest,)))
    return fates


def name_of(test: str) -> str:
    """Return the name of a test's function."""
    return test.partition("::")[2]


def likeness(first: ast.FunctionDef, second: ast.FunctionDef) -> float:
    """Compute the share of words that two functions have in common (Dice coefficient)."""
    counts = [Counter(re.findall(r"\w+", ast.unparse(function))) for function in (first, second)]
    return 2 * (counts[0] & counts[1]).total() / (counts[0].total() + counts[1].total())


def check(
    before: Tests, now: Tests, by_hand: Iterable[Fate], fates: Iterable[Fate]
) -> Iterator[str]:
    """Report tests without a fate, and fates of unknown tests."""
    if lost := before.keys() - {fate.test for fate in fates}:
        yield (
            f"Each test of {BEFORE} must have a fate, but these have none: {join_names(lost)}. "
            "Add them to tools/test_fates.toml."
        )
    if unknown := {fate.test for fate in by_hand} - before.keys():
        yield (
            f"tools/test_fates.toml must name tests of {BEFORE}, which has none of these: "
            f"{join_names(unknown)}."
        )
    if missing := {place for fate in fates for place in fate.places} - now.keys():
        yield (
            "tools/test_fates.toml must name tests that exist, but these do not: "
            f"{join_names(missing)}."
        )


def join_names(tests: Iterable[str]) -> str:
    """Join the names of tests."""
    return ", ".join(sorted(tests))


def rows(fates: Iterable[Fate]) -> Iterator[str]:
    """Write the lines of the table."""
    yield f"test of {BEFORE}\tfate\twhere it is now, or why it was deleted\n"
    for test, fate, places, reason in fates:
        # a kept test is where it was, and a moved test keeps its name
        where = {"kept": "", "moved": places[0].partition("::")[0] if places else ""}
        yield f"{test}\t{fate}\t{where.get(fate, reason or join_names(places))}\n"


if __name__ == "__main__":
    sys.exit(main())
