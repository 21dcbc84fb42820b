"""
Rows of the paper's Table 1, which a family may offer for its layer (`heedful.paper.layer_kinds`).

The paper prints orders of growth. Here each row also has functions for exact numbers: multiply-adds
of a layer with its projections, and the longest path from an input to an output of a stack.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn

from heedful.families.registry import families

States = Float[Tensor, "batch time width"]


@dataclass(frozen=True)
class LayerSizes:
    """The sizes of a layer, named by the paper's letters."""

    n: int
    """Number of positions."""
    d: int
    """Width of the states."""
    k: int = 3
    """Kernel size of a convolution."""
    r: int = 32
    """Size of the neighborhood of restricted self-attention."""


@dataclass(frozen=True)
class LayerKind:
    """A row of Table 1."""

    name: str
    cost: str
    """Published cost of a layer."""
    sequential: str
    """Published number of sequential operations."""
    path: str
    """Published longest path; empty if the paper gives no path."""
    printed: Callable[[LayerSizes], int]
    """The published cost as a number."""
    exact: Callable[[LayerSizes], int]
    """Multiply-adds of a layer with its projections."""
    longest_path: Callable[[LayerSizes, bool], int]
    """
    The longest of all shortest paths from an input to an output, in layers, or in steps of a
    recurrent layer. The flag is true if each position reads only itself and earlier positions.
    """
    build: Callable[[LayerSizes], nn.Module] | None = None
    """Builds the family's layer, which maps states (batch, n, d) to states of the same shape."""


@runtime_checkable
class RunsByStep(Protocol):
    """A layer whose longest path goes through its own steps."""

    def unrolled(self, x: States, joined: int | None = None) -> Float[Tensor, "batch width"]:
        """Run step by step to the last state; gradients flow through the last `joined` steps."""


def family_layers() -> list[LayerKind]:
    """List the rows that families offer."""
    modules: list[Any] = [import_module(f.table1) for f in families() if f.table1]
    return [module.LAYER for module in modules]
