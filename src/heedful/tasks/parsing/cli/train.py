"""`heedful parse train`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Device, Precision, Threads, say
from heedful.cli.terminal_text import echo


def train(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="A built-in recipe or a TOML file.")
    ],
    trees: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Bracketed trees, one a line or spread, plain, .gz or .xz; may be repeated or a "
            "quoted glob.",
        ),
    ] = None,
    valid_trees: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Held-out trees.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder to make.")] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(help="Subwords of the words, as in heedful train; symbols are always listed."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting: train.steps=200."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in --out, bit for bit.")
    ] = False,
    finetune_from: Annotated[
        Path | None, typer.Option(help="Start from this run's weights and settings.")
    ] = None,
    reset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART",
            help="Do not take this part over from --finetune-from: tokenizer, embeddings, encoder "
            "or decoder; repeatable.",
        ),
    ] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print all settings as TOML and exit.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Check everything and print what training would do, without training."
        ),
    ] = False,
    device: Device = "",
    precision: Precision = "",
    threads: Threads = 0,
) -> None:
    """
    Train a parser on bracketed trees, such as those of the Penn Treebank.

    Traces, function tags and the outer bracket are left out. Recipes for it: paper-parsing,
    t2t-parsing, vinyals-parsing, parsing-small, parsing-small-lstm. Any other recipe becomes a
    parser, too, with words and symbols in vocabularies of their own.
    """
    settings = list(set_ or [])
    settings += [f"train.device={device}"] * bool(device)
    settings += [f"train.precision={precision}"] * bool(precision)
    settings += [f"train.threads={threads}"] * bool(threads)
    if print_config:
        from heedful.config.load import load_task_config, to_toml
        from heedful.tasks.parsing.task import TASK

        typer.echo(to_toml(load_task_config(TASK, recipe, settings)), nl=False)
        return
    required: dict[str, object] = {"--trees": trees} | ({} if dry_run else {"--out": out})
    for name, value in required.items():
        if not value:
            raise typer.BadParameter("is needed.", param_hint=name)
    from heedful.training.setup import TrainingSetup

    setup = TrainingSetup.resolve(
        recipe,
        out=out,
        task_texts={"trees": trees, "valid_trees": valid_trees or None},
        settings=settings,
        tokenizer=tokenizer,
        resume=resume,
        finetune_from=finetune_from,
        reset=reset or (),
    )
    if dry_run:
        from heedful.training.dry_run import describe_plan

        echo(describe_plan(setup, say))
        return
    from heedful.training.train import run_training

    run_training(setup)
