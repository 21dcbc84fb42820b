"""`heedful train`."""

from typing import Annotated, Any

import typer

from heedful.cli.options import (
    Device,
    DryRun,
    PrintConfig,
    Recipe,
    Threads,
    TrainingPrecision,
    refuse,
    with_flags,
)
from heedful.cli.training import start_training
from heedful.training.options import TrainingOptions


def _show_recipes(wanted: bool) -> None:
    """Print the built-in recipes, one per line, and exit."""
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
    device_rate: Annotated[
        float | None,
        typer.Option(
            min=1,
            metavar="TOKENS",
            help="With --dry-run: target tokens per second of one GPU, as measured by heedful "
            "bench train; the plan then includes memory and training time.",
        ),
    ] = None,
    device_count: Annotated[
        int, typer.Option(min=1, help="With --device-rate: number of GPUs that share each batch.")
    ] = 1,
    device_bandwidth: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            metavar="GB/S",
            help="Needed with --device-count above 1: GB per second that each GPU can send to "
            "another.",
        ),
    ] = None,
    device: Device = "",
    precision: TrainingPrecision = "",
    threads: Threads = 0,
) -> None:
    """
    Train a model on two line-aligned texts.

    RECIPE is the name of a built-in recipe (`--recipes` lists them) or a TOML file with your own
    settings. Without --device, --precision and --threads, the settings of the recipe apply.

    The same command under torchrun trains with several processes: torchrun --nproc-per-node 2 -m
    heedful train ...
    """
    del recipes  # the option's callback ends the command
    if (device_count > 1 or device_bandwidth is not None) and device_rate is None:
        refuse("--device-rate", "is needed with --device-count or --device-bandwidth.")
    if device_rate is not None and not dry_run:
        refuse("--device-rate", "needs --dry-run.")
    plan = {"rate": device_rate, "count": device_count, "bandwidth": device_bandwidth}
    from heedful.tasks.task import TRANSLATION

    start_training(
        TRANSLATION,
        recipe,
        options,
        (),  # `find_training_data` lists the options of which one is needed
        print_config,
        dry_run,
        plan if device_rate is not None else None,
        device=device,
        precision=precision,
        threads=threads,
    )
