"""A task can be removed: without its folders and its line in the registry the rest works."""

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from heedful.tasks import registry

ROOT = Path(__file__).parents[2]
# What measures a task cannot be imported without it: Table 4 of the paper, and the pages of
# results, which one module of `benchmarks` writes together. Troubles of its files go with it.
MEASURES = {
    "parsing": (
        *("src/heedful/paper/parsing", "src/heedful/paper/table4.py"),
        *("tests/docs/test_busy_page.py", "tests/docs/test_figures.py"),
        "tests/benchmarks/test_parsers.py",
        "tests/cases/test_brackets_of_trees.py",
    )
}
# Settings, runs, searches, models, trainings and the command line.
FAST = (
    "tests/unit/config",
    "tests/unit/families/test_registry.py",
    "tests/unit/model/test_encoder_decoder.py",
    "tests/unit/preparation",
    "tests/unit/runs",
    "tests/unit/search/test_rules.py",
    "tests/unit/tasks",
    "tests/unit/training/test_setup.py",
    "tests/unit/translation/test_ensemble.py",
    "tests/unit/translation/test_translate.py",
    "tests/structure/test_public_names.py",
    "tests/structure/test_start.py",
)


def run(tree, *arguments):
    """Run Python in a copy of the repository."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module", params=registry.task_names())
def removed(request, tmp_path_factory):
    """Copy the repository without a task."""
    name, tree = request.param, tmp_path_factory.mktemp("without") / "heedful"
    leave = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info")
    shutil.copytree(ROOT, tree, ignore=leave)
    for folder in (f"src/heedful/tasks/{name}", f"tests/unit/tasks/{name}"):
        shutil.rmtree(tree / folder)
    lines = tree / "src/heedful/tasks/registry.py"
    text = lines.read_text(encoding="utf-8")
    line = f'    "heedful.tasks.{name}",\n'
    assert text.count(line) == 1
    lines.write_text(text.replace(line, ""), encoding="utf-8")
    return name, tree


def test_all_other_tests_are_collected(removed):
    name, tree = removed
    left_out = [f"--ignore={path}" for path in MEASURES.get(name, ())]
    done = run(tree, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *left_out)
    assert done.returncode == 0, done.stdout[-3000:]


def test_what_is_left_works(removed):
    _, tree = removed
    done = run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", *FAST)
    assert done.returncode == 0, done.stdout[-3000:]


def test_nothing_of_it_is_offered(removed):
    name, tree = removed
    task = import_module(f"heedful.tasks.{name}.task").TASK
    commands = run(tree, "-m", "heedful", "--help")
    assert commands.returncode == 0, commands.stderr
    command = import_module(f"heedful.tasks.{name}.cli").TRAINS[0]
    assert f"\n  {command} " not in commands.stdout
    listed = run(tree, "-c", "import heedful; print(*heedful.recipes.recipe_names())")
    assert set(task.recipes).isdisjoint(listed.stdout.split())
    settings = run(tree, "-m", "heedful", "train", "tiny", "--print-config")
    assert settings.returncode == 0, settings.stderr
    assert f"[{name}]" not in settings.stdout
