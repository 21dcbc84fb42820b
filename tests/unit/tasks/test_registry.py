"""The tasks that there are, and what each run has."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from heedful.config.recipes import recipe
from heedful.settings.conditions import flat
from heedful.tasks import registry
from heedful.tasks.task import TRANSLATION, Task

SOURCE = Path(registry.__file__).parents[1]
# Where a task may be named besides its folder: its line, its public name, and the paper's table.
NAMED = ("__init__.py", "tasks/registry.py", "paper/")


def test_a_run_translates_unless_another_task_acts():
    assert registry.task_of(flat(recipe("tiny").to_dict())) is TRANSLATION
    for task in registry.tasks():
        changed = recipe("tiny").with_settings(task.changes)
        assert registry.task_of(flat(changed.to_dict())) is task


def test_the_recipes_of_a_task_have_that_task():
    for task in registry.tasks():
        assert task.recipes
        for name in task.recipes:
            assert registry.task_of(flat(recipe(name).to_dict())) is task


@pytest.mark.parametrize("folder", registry.FOLDERS)
def test_a_folder_has_the_modules_that_the_program_looks_for(folder):
    assert isinstance(importlib.import_module(f"{folder}.task").TASK, Task)
    commands = importlib.import_module(f"{folder}.cli")
    assert commands.TRAINS[0] == commands.app.info.name
    assert all(map(callable, commands.PAPER))
    assert callable(importlib.import_module(f"{folder}.quickstart").quickstart)
    assert registry.task_folder(folder.rpartition(".")[2]) == folder


def test_translation_is_in_no_folder_of_its_own():
    assert registry.task_folder("translation") == "heedful"
    assert "translation" not in registry.task_names()


@pytest.mark.parametrize("name", registry.task_names())
def test_no_task_is_named_outside_of_its_folder(name):
    setting = re.compile(rf"\b{name}\.[a-z_]|tasks[./]{name}\b|\A{name}\Z")
    named = []
    for file in sorted(SOURCE.rglob("*.py")):
        place = file.relative_to(SOURCE).as_posix()
        if place.startswith((f"tasks/{name}/", *NAMED)):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            words = [getattr(node, field, "") for field in ("attr", "id", "module", "value")]
            named += [f"{place}: {word}" for word in words if setting.search(f"{word}")]
    assert named == []


def test_what_a_task_does_not_define_is_as_in_translation():
    task, settings = Task(), flat(recipe("tiny").to_dict())
    assert not task.acts(settings)
    assert list(task.clashes(settings)) == task.beyond_transformer(settings) == []
    assert task.exported(settings) == task.changes == {}
    task.check_origin("run", settings, ())
    task.check_alike("run", settings, settings, ())
