"""Records and pages of results, in the format that all benchmarks share."""

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from heedful.experiments.page import code_block
from heedful.experiments.record import Record, describe_this_machine

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
ORIGIN = ("commit", "machine")
"""Entries of a measurement that was not taken together with the others of its record."""
HELD = "CT2_FORCE_CPU_ISA"
"""Variable that `held_to_avx2.sh` sets for a benchmark."""


class ResultPage(NamedTuple):
    """A page of results."""

    name: str
    title: str
    parts: Mapping[str, Callable[[Record], str]]
    """The functions that lay out the records of the page, by the name of the record."""
    head: str = ""
    """Text above all parts of the page."""
    foot: Callable[[], str] = str
    """Returns the text below all parts."""

    def text(self) -> str:
        """Lay out the parts that were measured; empty if no part was measured."""
        sections = [
            part.strip()
            for name, body in self.parts.items()
            if (record := read(name)) is not None
            for part in (body(record), *_commands(record), record.origin)
        ]
        if not sections:
            return ""
        return (
            "\n\n".join(filter(None, [f"# {self.title}", self.head, *sections, self.foot()])) + "\n"
        )

    def keep(self, name: str, measurements: dict[str, Any], commit: str, **more: Any) -> None:
        """Write a record, and then the page. `more`: additional fields of the record."""
        more = {"commands": [command()]} | more
        Record(commit, machine(), measurements, **more).write(RESULTS / f"{name}.json")
        self.write()

    def write(self) -> None:
        """Write the page; `python -m benchmarks.figures` updates the figures on other pages."""
        (RESULTS / f"{self.name}.md").write_text(self.text(), encoding="utf-8")


def read(name: str) -> Record | None:
    """Read a record; None if there is no record yet."""
    path = RESULTS / f"{name}.json"
    return Record.read(path) if path.exists() else None


def measurements_of(name: str) -> dict[str, Any]:
    """Return the measurements of a record; empty if there is no record yet."""
    record = read(name)
    return {} if record is None else record.measurements


def outputs_of(name: str) -> dict[str, Any]:
    """Return the outputs of a record; empty if there is no record yet."""
    record = read(name)
    return {} if record is None else record.outputs


def arguments(description: str | None, runs: str = "") -> argparse.ArgumentParser:
    """Build the argument parser of a benchmark. `runs`: subfolder of `runs` for its models."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--commit", default=commit(), help="the commit at which the existing runs were trained"
    )
    if runs:
        parser.add_argument("--runs", type=Path, default=ROOT / "runs" / runs)
    return parser


def data_folder() -> Path:
    """Return the folder of the corpora."""
    return Path(os.environ.get("HEEDFUL_DATA", "../shared/data")).resolve()


def heedful(*words: object, **options: Any) -> str:
    """Run a heedful command as a user would, and return its output."""
    line = [sys.executable, "-m", "heedful", *map(str, words)]
    done = subprocess.run(line, check=True, encoding="utf-8", stdout=subprocess.PIPE, **options)
    return str(done.stdout)


def command() -> str:
    """Return the running command as one would type it in a shell."""
    spec = sys.modules["__main__"].__spec__
    module = "" if spec is None else spec.name.removesuffix(".__main__")
    return shlex.join(["python", "-m", module, *sys.argv[1:]]).replace(f"{ROOT}/", "")


def commit() -> str:
    """Name the measured commit, and mark uncommitted changes."""
    head = _git("rev-parse", "--short", "HEAD")
    return head + (" with changes" if _git("status", "--porcelain", "src", "benchmarks") else "")


def machine() -> str:
    """Describe the machine in one line."""
    restriction = "; limited to AVX2 by benchmarks/held_to_avx2.sh" if HELD in os.environ else ""
    return describe_this_machine() + restriction


def origins(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Name the commits and machines of measurements, which are given by title."""
    titles: dict[tuple[str, ...], list[str]] = {}
    for title, row in rows.items():
        titles.setdefault(tuple(row[key] for key in ORIGIN), []).append(title)
    return [
        f"Measured at commit {commit} on {machine_name}: {'; '.join(named)}."
        for (commit, machine_name), named in titles.items()
    ]


def _commands(record: Record) -> list[str]:
    return [code_block(dict.fromkeys(record.commands))] if record.commands else []


def _git(*words: str) -> str:
    """Run git, and return its output."""
    return subprocess.check_output(["git", "-C", str(ROOT), *words], encoding="utf-8").strip()
