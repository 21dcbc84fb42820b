"""What a training run would do, without doing it."""

from collections.abc import Sequence

import torch

from heedful.config.load import load_config
from heedful.machine.devices import resolve_device
from heedful.machine.rates import resolve_precision
from heedful.model.build import build_model, padded_vocabulary, parameter_count
from heedful.workflow.finetune import Origin, inherited_settings
from heedful.workflow.material import Material


def describe_plan(
    recipe: str, material: Material, settings: Sequence[str] = (), origin: Origin | None = None
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

    Returns
    -------
    str
        A few lines.

    Notes
    -----
    Reads raw text once, so that unequal line counts and broken characters show now. The number
    of parameters is that of the vocabulary that is asked for.
    """
    inherited = inherited_settings(origin) if origin else None
    config = material.configure(load_config(recipe, settings, inherited))
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
            f"model       {parameter_count(model):,} parameters, vocabulary {rows:,} "
            f"({config.data.subwords})",
            f"training    {settings_.steps:,} steps of {settings_.batch_tokens:,} tokens a side"
            + (f", at most {settings_.minutes:g} minutes" if settings_.minutes else ""),
            f"device      {device}, {precision}",
            "nothing was written",
        )
    )
