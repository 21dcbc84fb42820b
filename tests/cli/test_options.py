"""The options of training as flags; as keywords: tests/unit/training/test_options.py."""

from dataclasses import fields
from importlib import import_module

import pytest
import typer

from heedful.cli.main import app
from heedful.tasks.registry import task_names, tasks
from heedful.training.options import RunOptions, TrainingOptions

TRAIN = [(("train",), TrainingOptions)]
for name, task in zip(task_names(), tasks(), strict=True):
    path = import_module(f"heedful.tasks.{name}.cli").TRAINS
    TRAIN += [(path, RunOptions), (path, task.text_options)]


@pytest.mark.parametrize(("path", "kind"), TRAIN)
def test_each_field_is_a_flag_with_its_help(path, kind):
    command = typer.main.get_command(app)
    for name in path:
        command = command.commands[name]
    flags = {parameter.name: parameter for parameter in command.params}
    for option in fields(kind):
        if not option.metadata.get("help"):  # for Python alone, or `--plugin` of every command
            continue
        flag = flags[option.name]
        assert flag.help == option.metadata["help"]
        assert flag.opts == ["--set" if option.name == "settings" else f"--{dashed(option.name)}"]


def dashed(name):
    return name.replace("_", "-")
