"""`heedful parse train`."""

from typing import Any

from heedful.cli.options import (
    Device,
    DryRun,
    PrintConfig,
    Recipe,
    Threads,
    TrainingPrecision,
    with_flags,
)
from heedful.cli.training import start_training
from heedful.tasks.parsing.options import TreeOptions
from heedful.training.options import RunOptions


@with_flags("options", TreeOptions, RunOptions, print_config=..., device=("tensorboard",))
def train(
    recipe: Recipe,
    options: dict[str, Any],
    print_config: PrintConfig = False,
    dry_run: DryRun = False,
    device: Device = "",
    precision: TrainingPrecision = "",
    threads: Threads = 0,
) -> None:
    """
    Train a parser on bracketed trees.

    The trees are in Penn Treebank format. Traces, function tags and the outer bracket are
    left out. Recipes for parsers: paper-parsing, t2t-parsing, vinyals-parsing, parsing-small,
    parsing-small-transformer, parsing-small-lstm. Any other recipe can train a parser too, with
    separate vocabularies for words and symbols. Without --device, --precision and --threads, the
    settings of the recipe apply.
    """
    from heedful.tasks.parsing.task import TASK

    start_training(
        TASK,
        recipe,
        options,
        ("trees",),
        print_config,
        dry_run,
        device=device,
        precision=precision,
        threads=threads,
    )
