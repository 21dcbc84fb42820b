"""The versions that the package allows are those that make tests and the documentation names."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "howto" / "versions.md").read_text(encoding="utf-8")


def _variable(name: str) -> list[str]:
    return re.search(rf"(?m)^{name} \?= (.*)$", MAKEFILE)[1].split()


def _pair(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def test_make_tests_the_oldest_and_the_newest_torch_that_the_package_allows():
    (line,) = (line for line in PROJECT["dependencies"] if line.startswith("torch"))
    lowest, above = map(_pair, re.fullmatch(r"torch>=([\d.]+),<([\d.]+)", line).groups())
    oldest, newest = map(_pair, _variable("TORCH_RANGE"))
    assert oldest == lowest
    assert newest == (above[0], above[1] - 1)
    pinned = re.search(r"(?m)^torch==(.*)$", (ROOT / "constraints.txt").read_text("utf-8"))[1]
    assert lowest <= _pair(pinned) < above
    for version in (*_variable("TORCH_RANGE"), pinned):
        assert re.search(rf"(?m)^\| [\d.]+ \| {version}\S* \|", PAGE), version


def test_make_tests_each_python_that_the_package_names():
    named = [
        line.rpartition(" ")[2]
        for line in PROJECT["classifiers"]
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", line)
    ]
    assert PROJECT["requires-python"] == f">={named[0]}"
    assert {f"python{version}" for version in named[1:]} <= {*_variable("PYTHON_RANGE")}
    for version in named:
        assert re.search(rf"(?m)^\| {version} \| [\d.]+ \|", PAGE), version
