"""Normalisation of states: layer norm, as in the paper, none, or what takes its place."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor, nn

NormKind = Literal["layer", "none"]
NormFactory = Callable[[int, float], nn.Module]
"""Builds a norm from the width of the states and what is added to the variance."""


class PaddedNorm(ABC):
    """
    A norm that has to know which positions are real.

    Notes
    -----
    Buffers whose names begin with ``running_`` are averages of the training; a checkpoint has them.
    """

    @abstractmethod
    def forward(
        self,
        x: Float[Tensor, "batch time d_model"],
        real: Bool[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch time d_model"]:
        """
        Normalise states.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            States.
        real : Tensor of bool, shape (batch, time), optional
            True at real positions; everywhere if None.

        Returns
        -------
        Tensor of float, shape (batch, time, d_model)
            Normalised states; those of padding do not matter.

        Notes
        -----
        Padding must not change the states of other positions.
        """


def make_norm(kind: NormKind | NormFactory, d_model: int, epsilon: float) -> nn.Module:
    """Build a norm; `kind` none is the identity."""
    if callable(kind):
        return kind(d_model, epsilon)
    return nn.LayerNorm(d_model, eps=epsilon) if kind == "layer" else nn.Identity()


def normalise(
    norm: nn.Module,
    x: Float[Tensor, "batch time d_model"],
    real: Bool[Tensor, "batch time"] | None,
) -> Float[Tensor, "batch time d_model"]:
    """Apply a norm of any kind; only a `PaddedNorm` has to know which positions are real."""
    out: Tensor = norm(x, real) if isinstance(norm, PaddedNorm) else norm(x)
    return out


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """List what a checkpoint stores: the parameters, tied ones once, and running averages."""
    return {**dict(model.named_parameters()), **running_averages(model)}


def running_averages(model: nn.Module) -> dict[str, Tensor]:
    """List the averages that a forward pass in training changes."""
    return {name: buffer for name, buffer in model.named_buffers() if is_running_average(name)}


def is_running_average(name: str) -> bool:
    """Tell running averages from weights: their names in a checkpoint begin as torch's do."""
    return name.rpartition(".")[2].startswith("running_")
