"""The systems of a table, and their scaled-down models."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import torch

from heedful.config.schema import RunConfig
from heedful.experiments.work import build


class TableSystem(NamedTuple):
    """A system to train, or several systems that translate together."""

    name: str
    """Name of the run folder."""
    title: str
    settings: tuple[str, ...] = ()
    """Settings that differ from the table's common settings, as `key=value`."""
    replace_unknown: bool = False
    """Whether unknown words in translations are replaced by source words."""
    after: str = ""
    """Name of the system that provides the initial weights."""
    slowdown: float = 1.0
    """Time of a step, divided by the time of a step of the system in `after`."""
    times: int = 1
    """Factor by which its number of steps is multiplied, in tables with equal steps."""
    fewest: int = 10
    """Minimum number of steps, with which the system learns enough to be compared."""
    members: tuple[str, ...] = ()
    """Names of the systems of an ensemble, which is not trained itself."""

    def with_seed(self, seed: int) -> "TableSystem":
        """Return the system with another training seed."""
        return self._replace(
            name=f"{self.name}-{seed}",
            title=f"{self.title}, seed {seed}",
            settings=(*self.settings, f"train.seed={seed}"),
        )


_WIDTHS = re.compile(r"(model\.(?:\w+\.)*(?:d_\w+|\w+_size)=)(\d+)$")
_LAYERS = re.compile(r"\((\d+),")  # the width in each pair of width and kernel size


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
    """Count the weights of a model with the configured vocabulary size, without allocating them."""
    with torch.device("meta"):
        model = build(config, config.data.vocabulary_size)
    return sum(weight.numel() for weight in model.parameters())
