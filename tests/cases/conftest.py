"""Troubles that users have reported, a file for each, and a verdict for each file."""

import ast
import fcntl
import os
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.translation.translator import Translator
from tests.support.commands import train_arguments, write_text
from tests.support.serving import serving

FOLDER = Path(__file__).parent


@pytest.fixture(scope="session")
def case_text(grammar, tmp_path_factory) -> Path:
    """A folder with train.en, train.fr, valid.en and valid.fr, of a grammar of 150 words."""
    folder = tmp_path_factory.mktemp("text")
    pairs, held_out = grammar
    write_text(folder, pairs, "train")
    write_text(folder, held_out, "valid")
    return folder


@pytest.fixture(scope="session")
def toy_run(heedful_cli, case_text, tmp_path_factory) -> Path:
    """The folder of a run that translates the grammar almost without errors."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    # Several processes run these files: the first trains, the others wait and use its run.
    with (shared / "toy.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        out = shared / "toy-run"
        if not (out / "finished").exists():
            settings = ("train.steps=200", "train.validate_steps=200", "train.checkpoint_steps=200")
            settings = ("train.precision=fp32", "train.warmup=150", "data.reading=text", *settings)
            done = heedful_cli(*train_arguments(case_text, out, *settings))
            assert done.returncode == 0, done.stderr
            (out / "finished").touch()
    return out


@pytest.fixture(scope="package")
def plain_server(zygote, toy_run):
    """A server of the run that computes as `translator` does."""
    with serving(zygote, toy_run, "--precision", "fp32") as server:
        yield server


@pytest.fixture(scope="session")
def translator(toy_run) -> Translator:
    return Translator.load(toy_run, device="cpu", precision="fp32", threads=1)


@pytest.fixture
def translate(translator) -> Callable[..., list[str]]:
    """Translate lines; returns their texts."""

    def texts(lines, **options):
        return [result.text for result in translator.translate(lines, **options)]

    return texts


def _trouble(file: Path) -> str:
    """The first line of a file's docstring."""
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


def pytest_terminal_summary(terminalreporter) -> None:
    """Print for each trouble whether its tests pass."""
    outcomes = defaultdict(set)
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, ()):
            file = terminalreporter.config.rootpath / report.nodeid.partition("::")[0]
            if file.parent == FOLDER:
                outcomes[file].add(outcome)
    if not outcomes:
        return
    terminalreporter.section("troubles")
    for file in sorted(outcomes):
        verdict = "holds" if outcomes[file] == {"passed"} else "FAILS"
        terminalreporter.line(f"{verdict}  {file.stem.removeprefix('test_')}: {_trouble(file)}")
