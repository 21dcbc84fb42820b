"""
The tasks other than translation, one line for each.

The order of tasks determines the order of their tables in a printed recipe, and of their commands
in the help. Importing this module loads no task, because the command line initially needs only the
names of the tasks.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful.families.family import Recipe
    from heedful.tasks.task import Task

# Each package has a module `task` with a `TASK`; the last part of its name is the task's name.
FOLDERS: Sequence[str] = [
    "heedful.tasks.parsing",
]


def task_names() -> tuple[str, ...]:
    """List the names of the tasks."""
    return tuple(folder.rpartition(".")[2] for folder in FOLDERS)


def task_folder(name: str) -> str:
    """Return the package of a task; for translation it is `heedful` itself."""
    return next((folder for folder in FOLDERS if folder.endswith(f".{name}")), "heedful")


def task_modules(part: str) -> Iterator[Any]:
    """Import a module of each task, such as its `cli`."""
    return (import_module(f"{folder}.{part}") for folder in FOLDERS)


@cache
def tasks() -> tuple["Task", ...]:
    """List the tasks."""
    return tuple(module.TASK for module in task_modules("task"))


def translation() -> "Task":
    """Return the task of translation, which is the default."""
    task: Task = import_module("heedful.tasks.task").TRANSLATION
    return task


def text_options() -> tuple[type[Any], ...]:
    """List the dataclasses of options that name the text of each task."""
    return tuple(task.text_options for task in tasks() if task.text_options is not None)


def task_of(settings: Mapping[str, Any]) -> "Task":
    """Find the active task. `settings`: the settings of a run by their dotted names."""
    return next((task for task in tasks() if task.acts(settings)), translation())


def task_recipes() -> Iterator[tuple[str, "Recipe"]]:
    """List the recipes of all tasks with their names."""
    for task in tasks():
        yield from task.recipes.items()


def task_metrics() -> tuple[str, ...]:
    """List the values that tasks add to `train.best_by`."""
    return tuple(metric for task in tasks() for metric in task.metrics)
