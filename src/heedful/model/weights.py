"""The weights of a model: their names and number, and interfaces of modules that draw them."""

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return a checkpoint's tensors: parameters, with tied weights once, and running averages."""
    return {**dict(model.named_parameters()), **running_averages(model)}


def running_averages(model: nn.Module) -> dict[str, Tensor]:
    """Return the averages that a forward pass in training updates, by name."""
    return {name: buffer for name, buffer in model.named_buffers() if is_running_average(name)}


def is_running_average(name: str) -> bool:
    """Return whether a buffer's name begins with ``running_``, as names of running averages do."""
    return name.rpartition(".")[2].startswith("running_")


def parameter_count(model: nn.Module) -> int:
    """Count the weights, each shared weight once, as in the last column of the paper's Table 3."""
    return sum(parameter.numel() for parameter in model.parameters())


@runtime_checkable
class DrawsWeights(Protocol):
    """A module that draws its own initial weights (`heedful.model.initialize`)."""

    def initialize(self, generator: torch.Generator) -> None:
        """Draw the weights."""


@runtime_checkable
class Initialized(DrawsWeights, Protocol):
    """A module that draws its own initial weights, its embedding table and its output matrix."""

    def initialize_table(self, weight: Tensor, generator: torch.Generator) -> None:
        """Draw the embedding table that feeds the module, or the output matrix that follows it."""


@runtime_checkable
class HasWeightNorm(Protocol):
    """A module that may normalize its weights at each use (Salimans and Kingma 2016)."""

    def fold_weight_norm(self) -> None:
        """Replace the weights with the normalized weights, which must not change afterwards."""
