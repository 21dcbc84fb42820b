"""The tasks that there are, and what each run has."""

import importlib

import pytest

from heedful.config.recipes import recipe
from heedful.settings.conditions import flat
from heedful.tasks import registry
from heedful.tasks.task import TRANSLATION, Task


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
    assert callable(importlib.import_module(f"{folder}.quickstart").quickstart)
    assert registry.task_folder(folder.rpartition(".")[2]) == folder


def test_translation_is_in_no_folder_of_its_own():
    assert registry.task_folder("translation") == "heedful"
    assert "translation" not in registry.task_names()
