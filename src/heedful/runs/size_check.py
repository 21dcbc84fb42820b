"""A check of the settings against the shapes of the weights, before a model is built."""

from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path

import torch
from torch import nn

from heedful.config.model import ModelConfig
from heedful.errors import RunFolderError
from heedful.families.registry import families, part_layers
from heedful.model.weights import parameter_count

# Widths of Transformer blocks; an unused width may be larger than any weight.
_BLOCK_WIDTHS = ("d_ff", "encoder_d_ff", "decoder_d_ff", "d_k", "d_v")
# Loading reports wrong tensors by name later; this check only prevents a lack of memory.
_MOST_TIMES = 4
_ALWAYS = 1_000_000


def check_sizes(
    model: ModelConfig,
    rows: tuple[int, int],
    shapes: Mapping[str, tuple[int, ...]],
    build: Callable[[], nn.Module],
    origin: Path,
) -> None:
    """Refuse settings whose sizes cannot fit the weights, before any memory is allocated."""
    widest = max((max(shape, default=0) for shape in shapes.values()), default=0)
    # layers that share weights do not add weights
    depths = (
        f"{side}_layers" for side in ("encoder", "decoder") if not getattr(model, f"{side}_sharing")
    )
    bounds = {**dict.fromkeys(depths, len(shapes)), "d_model": widest}
    if "transformer" in (model.encoder, model.decoder):
        bounds |= dict.fromkeys(_BLOCK_WIDTHS, widest)
        # a family such as experts may replace every feed-forward network, so none has width
        # model.d_ff
        if any(part_layers(model, side) for side in ("encoder", "decoder")):
            bounds = {name: most for name, most in bounds.items() if "d_ff" not in name}
    wrong = [
        f"`model.{name}` is {value:,}"
        for name, most in bounds.items()
        if (value := getattr(model, name)) is not None and value > most
    ]
    wrong += [
        f"`{name}` is {count:,}"
        for family in families()
        for name, count in family.module_counts(model).items()
        if count > len(shapes)
    ]
    wrong += [f"the vocabulary has {max(rows):,} rows"] * (max(rows) > _MOST_TIMES * widest)
    if not wrong:
        with torch.device("meta"):
            needed = parameter_count(build())
        stored = sum(map(prod, shapes.values()))
        much = needed > _MOST_TIMES * stored + _ALWAYS
        wrong += [f"the model would have {needed:,} weights instead of {stored:,}"] * much
        if stored > _MOST_TIMES * needed + _ALWAYS:  # before all weights are read
            raise RunFolderError(
                f"{origin} must describe the weights next to it, but describes a model "
                f"with {needed:,} weights, and {stored:,} are stored; copy the run folder again."
            )
    if wrong:
        raise RunFolderError(
            f"{origin} must describe the weights next to it, but {' and '.join(wrong)}, which "
            "does not fit the weights; copy the run folder again."
        )
