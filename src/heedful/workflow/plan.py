"""What a training run would do, without doing it."""

from collections.abc import Sequence
from pathlib import Path

import torch

from heedful.checkpoint.rundir import RunFolder
from heedful.config.load import load_config
from heedful.machine.devices import resolve_device
from heedful.machine.rates import resolve_precision
from heedful.model.build import build_model, padded_vocabulary, parameter_count
from heedful.workflow.finetune import Origin, inherited_settings
from heedful.workflow.held_out import files_of, held_out_corpus, read_held_out
from heedful.workflow.material import Files, Material
from heedful.workflow.prepare import check_folder


def describe_plan(
    recipe: str,
    material: Material,
    settings: Sequence[str] = (),
    origin: Origin | None = None,
    *,
    valid_source: Files | None = None,
    valid_target: Files | None = None,
    out: Path | None = None,
    resume: bool = False,
    inexact: bool = False,
) -> str:
    """
    Check settings, text and device, and say what would be trained.

    Parameters
    ----------
    recipe : str
        A built-in name or a TOML file.
    material : Material
        The text, raw or prepared.
    settings : sequence of str, optional
        ``key=value`` strings.
    origin : Origin, optional
        The run that training goes on from.
    valid_source, valid_target : path, glob, or sequence of them, optional
        Held-out pairs.
    out : path, optional
        Where the run would be.
    resume : bool, default False
        Whether there may be a run already.
    inexact : bool, default False
        Whether its device may be another one.

    Returns
    -------
    str
        A few lines.

    Notes
    -----
    Reads raw text once, so that unequal line counts and broken characters show now. The number
    of parameters is that of the vocabulary that is asked for. Raises whatever the training would.
    """
    inherited = inherited_settings(origin) if origin else None
    config = material.configure(load_config(recipe, settings, inherited))
    valid = held_out_corpus(valid_source, valid_target, config)
    files = material.files()
    if valid is not None:
        files |= files_of(valid)
    if out is not None:
        check_folder(RunFolder(out), config, files, resume, inexact)
    held_out = read_held_out(valid)
    device = resolve_device(config.train.device)
    precision = resolve_precision(config.train.precision, device)
    rows = padded_vocabulary(config.data.vocabulary_size, config.data.vocabulary_multiple)
    with torch.device("meta"):
        model = build_model(config.model, rows, rows, max_length=config.data.max_length + 1)
    settings_ = config.train
    return "\n".join(
        (
            f"recipe      {config.recipe}",
            f"languages   {config.data.source_language or 'not named'} to "
            f"{config.data.target_language or 'not named'}",
            f"text        {material.describe()}",
            f"validation  {f'{len(held_out[0]):,} pairs' if held_out else 'none'}",
            f"model       {parameter_count(model):,} parameters, vocabulary {rows:,} "
            f"({config.data.subwords})",
            f"training    {settings_.steps:,} steps of {settings_.batch_tokens:,} tokens a side"
            + (f", at most {settings_.minutes:g} minutes" if settings_.minutes else ""),
            f"device      {device}, {precision}",
            "nothing was written",
        )
    )
