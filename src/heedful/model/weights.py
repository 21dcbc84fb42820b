"""The weights of a model: their names, their number, and the modules that draw them."""

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """List what a checkpoint stores: the parameters, tied ones once, and running averages."""
    return {**dict(model.named_parameters()), **running_averages(model)}


def running_averages(model: nn.Module) -> dict[str, Tensor]:
    """List the averages that a forward pass in training changes."""
    return {name: buffer for name, buffer in model.named_buffers() if is_running_average(name)}


def is_running_average(name: str) -> bool:
    """Tell running averages from weights: their names in a checkpoint begin as torch's do."""
    return name.rpartition(".")[2].startswith("running_")


def parameter_count(model: nn.Module) -> int:
    """Count the weights, shared ones once: the last column of the paper's Table 3."""
    return sum(parameter.numel() for parameter in model.parameters())


@runtime_checkable
class DrawsWeights(Protocol):
    """A module that draws its own initial weights (`heedful.model.initialize`)."""

    def initialize(self, generator: torch.Generator) -> None:
        """Draw the weights."""
        ...


@runtime_checkable
class Initialized(DrawsWeights, Protocol):
    """A module that draws its own initial weights, and those of the tables around it."""

    def initialize_table(self, weight: Tensor, generator: torch.Generator) -> None:
        """Draw a table of embeddings that it reads, or the output matrix behind it."""
        ...


@runtime_checkable
class HasWeightNorm(Protocol):
    """A module that may normalize its weights at each use (Salimans and Kingma 2016)."""

    def fold_weight_norm(self) -> None:
        """Keep the normalized weights alone, because they will not change any more."""
        ...
