"""A system of a table, scaled down."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import torch

from heedful.config.schema import RunConfig
from heedful.experiments.work import build


class TableSystem(NamedTuple):
    """A system to train, or several that translate together."""

    name: str
    """Name of the run folder."""
    title: str
    settings: tuple[str, ...] = ()
    """Settings that differ from the table's common settings, as `key=value`."""
    replace_unknown: bool = False
    """Whether unknown words are replaced by source words."""
    after: str = ""
    """Name of the system that provides the initial weights."""
    slowdown: float = 1.0
    """How many times longer a step takes than a step by likelihood."""
    times: int = 1
    """Factor of its number of steps, in tables with equal steps."""
    members: tuple[str, ...] = ()
    """Names of the systems of an ensemble, which is not trained itself."""


_WIDTHS = re.compile(r"(model\.(?:\w+\.)*(?:d_\w+|\w+_size)=)(\d+)$")
_LAYERS = re.compile(r"\((\d+),")  # of convolutions, in each pair of width and kernel


def narrow(settings: Sequence[str], factor: int) -> tuple[str, ...]:
    """
    Divide all widths of a model.

    >>> narrow(["model.d_model=512", "model.convs2s.encoder_layers=4x(256,3)"], 2)
    ('model.d_model=256', 'model.convs2s.encoder_layers=4x(128,3)')
    """
    narrowed = []
    for setting in settings:
        width = _WIDTHS.sub(lambda match: f"{match[1]}{int(match[2]) // factor}", setting)
        if setting.startswith("model."):
            width = _LAYERS.sub(lambda match: f"({int(match[1]) // factor},", width)
        narrowed.append(width)
    return tuple(narrowed)


def count_parameters(config: RunConfig) -> int:
    """Count the weights of a model whose vocabulary is full, without making them."""
    with torch.device("meta"):
        model = build(config, config.data.vocabulary_size)
    return sum(weight.numel() for weight in model.parameters())
