"""`heedful train`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Device, Precision, Threads, say
from heedful.cli.terminal_text import echo

_TEXT = (
    "lines, FILE.tsv:COLUMN, FILE.tmx:LANGUAGE, .sgm or FILE.xml:SIDE; plain, .gz or .xz; may be "
    "repeated or a quoted glob."
)


def _show_recipes(wanted: bool) -> None:
    """Print the built-in recipes, a line each, and exit."""
    if not wanted:
        return
    from heedful.config.recipes import describe, recipe_names

    width = max(map(len, recipe_names()))
    for name in recipe_names():
        typer.echo(f"{name:<{width}}  {describe(name)}")
    raise typer.Exit


def train(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="A built-in recipe or a TOML file.")
    ],
    source: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help=f"Source text: {_TEXT}")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Target text, aligned line by line.")
    ] = None,
    corpora: Annotated[
        Path | None, typer.Option(help="A TOML file that describes several corpora, instead.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="A folder made by heedful data prepare, instead of --source, --target."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Text to remove from the training data, such as a test set; may be repeated.",
        ),
    ] = None,
    valid_source: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Held-out source text.")
    ] = None,
    valid_target: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Held-out target text.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder to make.")] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            help="Tokenizer: a run folder, BPE codes of subword-nmt, a word list or a "
            "sentencepiece .model."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting: train.steps=200."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue the run in --out, bit for bit; from the start if it has no checkpoint "
            "yet.",
        ),
    ] = False,
    allow_inexact_resume: Annotated[
        bool,
        typer.Option(
            "--allow-inexact-resume", help="Resume even if the results will not be bit-identical."
        ),
    ] = False,
    finetune_from: Annotated[
        Path | None,
        typer.Option(
            help="Start from this run's weights, model settings and subwords; needed for "
            "train.objective=reward or risk."
        ),
    ] = None,
    finetune_weights: Annotated[
        str,
        typer.Option(
            show_default=False,
            help="Weights of --finetune-from: average, best, last or step-N; "
            "by default as in translate.",
        ),
    ] = "default",
    keep_state: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART",
            help="Take this state over from --finetune-from: optimiser or schedule; repeatable.",
        ),
    ] = None,
    reset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART",
            help="Do not take this part over from --finetune-from: tokenizer, embeddings, encoder "
            "or decoder; repeatable.",
        ),
    ] = None,
    recipes: Annotated[
        bool,
        typer.Option(
            "--recipes",
            callback=_show_recipes,
            is_eager=True,
            help="List the built-in recipes and exit.",
        ),
    ] = False,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print all settings as TOML and exit.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Check everything and print what training would do, without training. The text is "
            "prepared in a temporary folder.",
        ),
    ] = False,
    tensorboard: Annotated[
        Path | None,
        typer.Option(help="Write events for `tensorboard --logdir` to a subfolder of this folder."),
    ] = None,
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
    settings = list(set_ or [])
    settings += [f"train.device={device}"] * bool(device)
    settings += [f"train.precision={precision}"] * bool(precision)
    settings += [f"train.threads={threads}"] * bool(threads)
    if print_config:
        from heedful.config.load import load_config, to_toml

        typer.echo(to_toml(load_config(recipe, settings)), nl=False)
        return
    named = {"--source": source, "--target": target}
    required: dict[str, object] = {} if data or corpora else {**named}
    required |= {} if dry_run else {"--out": out}
    for name, value in required.items():
        if not value:
            raise typer.BadParameter("is needed.", param_hint=name)
    from heedful.training.setup import TrainingSetup

    setup = TrainingSetup.resolve(
        recipe,
        out=out,
        source=source or None,
        target=target or None,
        corpora=corpora,
        data=data,
        exclude=exclude or None,
        valid_source=valid_source or None,
        valid_target=valid_target or None,
        settings=settings,
        tokenizer=tokenizer,
        resume=resume,
        allow_inexact_resume=allow_inexact_resume,
        tensorboard=tensorboard,
        finetune_from=finetune_from,
        finetune_weights=finetune_weights,
        keep_state=keep_state or (),
        reset=reset or (),
    )
    if dry_run:
        from heedful.training.dry_run import describe_plan

        echo(describe_plan(setup, say))
        return
    from heedful.training.train import run_training

    run_training(setup)
