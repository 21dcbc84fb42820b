"""
Networks that a family puts in the place of a layer's feed-forward network.

The layers know this contract alone; `heedful.families` has what fulfils it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn


class Network(nn.Module, ABC):
    """
    A network that maps the state of each position to a new one.

    Notes
    -----
    Buffers whose names begin with ``running_`` are averages of the training; a checkpoint has them.
    """

    penalty: Tensor | None = None
    """What the last forward pass in training adds to the loss of a target token."""

    @abstractmethod
    def forward(
        self,
        x: Float[Tensor, "*batch d_model"],
        real: Bool[Tensor, "*batch"] | None = None,
    ) -> Float[Tensor, "*batch d_model"]:
        """
        Compute new states.

        Parameters
        ----------
        x : Tensor of float, shape (..., d_model)
            States.
        real : Tensor of bool, shape (...), optional
            True at positions that are no padding; everywhere if None.

        Returns
        -------
        Tensor of float, shape (..., d_model)
            New states; those of padding do not matter.

        Notes
        -----
        Padding must not change the states of other positions.
        """

    @abstractmethod
    def flops(self, tokens: int) -> int:
        """
        Count the operations of the products, a multiply-add as two.

        Parameters
        ----------
        tokens : int
            Positions that are no padding.

        Returns
        -------
        int
            Forward operations.

        Notes
        -----
        Padding is not computed, and not counted.
        """

    @classmethod
    def log_figures(cls, networks: Sequence[Any]) -> dict[str, float]:
        """
        Summarise all networks of this class in a model for a line of the training log.

        Parameters
        ----------
        networks : sequence of Network
            At least one.

        Returns
        -------
        dict of str to float
            Figures by name; empty by default.

        Notes
        -----
        Read once a line, in training.
        """
        del networks
        return {}


class Networks(NamedTuple):
    """Networks in some layers of an encoder or decoder."""

    build: Callable[[int], Network] | None = None
    """Builds a network for states of a width."""
    layers: tuple[int, ...] = ()
    """Layers, from 1, that have one."""


NO_NETWORKS = Networks()


def networks_in(model: nn.Module) -> list[Network]:
    """List the networks of a model."""
    return [module for module in model.modules() if isinstance(module, Network)]


def apply_network(
    network: nn.Module, x: Float[Tensor, "*batch d_model"], real: Bool[Tensor, "*batch"] | None
) -> Float[Tensor, "*batch d_model"]:
    """Apply a feed-forward network, or another one, which has to know what is no padding."""
    out: Tensor = network(x, real) if isinstance(network, Network) else network(x)
    return out
