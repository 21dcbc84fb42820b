"""`heedful train`."""

from typing import Annotated, Any

import typer

from heedful.cli.options import (
    Device,
    DryRun,
    Precision,
    PrintConfig,
    Recipe,
    Threads,
    with_flags,
)
from heedful.cli.training import start_training
from heedful.training.options import TrainingOptions


def _show_recipes(wanted: bool) -> None:
    """Print the built-in recipes, a line each, and exit."""
    if not wanted:
        return
    from heedful.config.recipes import describe, recipe_names

    width = max(map(len, recipe_names()))
    for name in recipe_names():
        typer.echo(f"{name:<{width}}  {describe(name)}")
    raise typer.Exit


@with_flags("options", TrainingOptions, recipes=..., device=("tensorboard",))
def train(
    recipe: Recipe,
    options: dict[str, Any],
    recipes: Annotated[
        bool,
        typer.Option(
            "--recipes",
            callback=_show_recipes,
            is_eager=True,
            help="List the built-in recipes and exit.",
        ),
    ] = False,
    print_config: PrintConfig = False,
    dry_run: DryRun = False,
    device: Device = "",
    precision: Precision = "",
    threads: Threads = 0,
) -> None:
    """
    Train a model on two line-aligned texts.

    RECIPE is a built-in name (`--recipes` lists them) or a TOML file with settings of your own.

    The same command under torchrun trains with several processes: torchrun --nproc-per-node 2 -m
    heedful train ...
    """
    del recipes  # its callback has ended the command
    from heedful.tasks.task import TRANSLATION

    start_training(
        TRANSLATION,
        recipe,
        options,
        () if {"data", "corpora", "resume"} & options.keys() else ("source", "target"),
        print_config,
        dry_run,
        device=device,
        precision=precision,
        threads=threads,
    )
