"""The code that `heedful train` and the `train` command of a task share."""

from collections.abc import Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import typer

from heedful.cli.options import refuse, say
from heedful.cli.terminal_text import echo
from heedful.training.options import TrainingOptions

if TYPE_CHECKING:
    from heedful.tasks.task import Task


def start_training(
    task: "Task",
    recipe: str,
    options: dict[str, Any],
    needed: Iterable[str],
    print_config: bool,
    dry_run: bool,
    plan: dict[str, Any] | None = None,
    **machine: str | int,
) -> None:
    """
    Train, print the settings, or print what training would do.

    `options`: the flags that the user set, by field name. `needed`: names of the flags that
    training requires. `plan`: devices for which a dry run computes memory and hours. `machine`:
    device, precision and threads, which become settings.
    """
    settings = [*options.pop("settings", ())]
    settings += [f"train.{name}={value}" for name, value in machine.items() if value]
    if print_config:
        from heedful.config.load import load_task_config, to_toml

        typer.echo(to_toml(load_task_config(task, recipe, settings)), nl=False)
        return
    for name in (*needed, *(() if dry_run else ("out",))):
        if name not in options:
            refuse(f"--{name}", "is needed.")
    from heedful.training.setup import TrainingSetup

    known = {option.name for option in fields(TrainingOptions)}
    task_texts = {name: options.pop(name) for name in options.keys() - known}
    chosen, later = TrainingOptions(settings=settings, **options), None
    if chosen.both_directions_first is not None:
        from heedful.training.both_directions import two_trainings

        first, later = two_trainings(recipe, chosen)
        chosen, later = (later, None) if first is None else (first, later)
    setup = TrainingSetup.resolve(recipe, chosen, task_texts)
    if dry_run:
        from heedful.training.device.plan import Devices
        from heedful.training.dry_run import describe_plan

        echo(describe_plan(setup, say, Devices(**plan) if plan else None))
        if later is not None:
            echo(f"afterwards  one direction, with {' '.join(later.settings)}")
        return
    from heedful.training.train import run_training

    run_training(setup)
    if later is not None:
        run_training(TrainingSetup.resolve(recipe, later))
