"""
The layers of Table 1, and what a layer of each costs.

The paper prints orders of growth. Here each is an exact number: multiply-adds of a layer with its
projections, sequential steps, and the longest path between two positions of a stack.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from heedful.families.recurrent.cells import Cell
from heedful.model.window import Window

GATES: dict[Cell, int] = {"lstm": 4, "gru": 3, "rnn": 1}
"""Products of each cell with the input; as many with the state."""


@dataclass(frozen=True)
class LayerSizes:
    """The sizes of a layer, by the paper's letters."""

    n: int
    """Positions."""
    d: int
    """Width of the states."""
    k: int = 3
    """Kernel of a convolution."""
    r: int = 32
    """Neighbourhood of restricted self-attention."""
    cell: Cell = "lstm"
    """Cell of the recurrent layer."""


@dataclass(frozen=True)
class LayerKind:
    """A row of Table 1."""

    name: str
    cost: str
    """Published cost of a layer."""
    sequential: str
    """Published number of sequential operations."""
    path: str
    """Published longest path, empty if the paper gives none."""
    printed: Callable[[LayerSizes], int]
    """The published cost as a number."""
    exact: Callable[[LayerSizes], int]
    """Multiply-adds of a layer with its projections."""
    longest_path: Callable[[LayerSizes, bool], int]
    """
    The longest of all shortest paths from an input to an output, in layers, or in steps within a
    recurrent one; the flag: whether a position reads earlier ones alone.
    """


def _steps(distance: int, reaches: Callable[[int], int]) -> int:
    """Count the layers until their reaches add up to a distance."""
    if distance == 0:
        return 1
    reach = 0
    for number in count():
        if reach >= distance:
            return number
        reach += reaches(number)
    raise AssertionError  # `count` does not end


def _reach(width: int, causal: bool) -> int:
    """Count the positions that a layer reads on its shorter side."""
    return width - 1 if causal else (width - 1) // 2


def _contiguous(s: LayerSizes, causal: bool) -> int:
    """Compute ceil((n - 1) / (k - 1)), or of half of it where both sides are read."""
    return _steps(s.n - 1, lambda _: _reach(s.k, causal))


def _dilated(s: LayerSizes, causal: bool) -> int:
    """Compute ceil(log_k n), or ceil(log_k (2 n - 1)) where both sides are read and k is odd."""
    span = s.k - 1
    return _steps(s.n - 1, lambda layer: span * s.k**layer if causal else span * s.k**layer // 2)


def _restricted(s: LayerSizes, causal: bool) -> int:
    """Compute ceil((n - 1) / (r - 1)), or of r / 2 where both sides are read."""
    return _steps(s.n - 1, lambda _: s.r - 1 if causal else s.r // 2)


def window(s: LayerSizes, causal: bool = False) -> Window:
    """Return the neighbours that a position of restricted self-attention sees."""
    found = Window.before_and_at(s.r) if causal else Window.around(s.r)
    assert found is not None
    return found


def _attention(s: LayerSizes, keys: int) -> int:
    """Count scores and mixing for so many keys a query, and four projections."""
    return 2 * s.n * keys * s.d + 4 * s.n * s.d**2


def _convolved(s: LayerSizes) -> int:
    """Count a kernel's products."""
    return s.k * s.n * s.d**2


def _separable(s: LayerSizes) -> int:
    """Count a kernel for each channel, and one product of all channels."""
    return s.k * s.n * s.d + s.n * s.d**2


KINDS = {
    kind.name: kind
    for kind in (
        LayerKind(
            "self-attention",
            "n² · d",
            "1",
            "1",
            lambda s: s.n**2 * s.d,
            lambda s: _attention(s, s.n),
            lambda s, causal: 1,
        ),
        LayerKind(
            "recurrent",
            "n · d²",
            "n",
            "n",
            lambda s: s.n * s.d**2,
            lambda s: 2 * GATES[s.cell] * s.n * s.d**2,
            lambda s, causal: s.n,
        ),
        LayerKind(
            "convolution",
            "k · n · d²",
            "1",
            "n / k",
            _convolved,
            _convolved,
            _contiguous,
        ),
        LayerKind(
            "dilated convolution",
            "k · n · d²",
            "1",
            "log_k n",
            _convolved,
            _convolved,
            _dilated,
        ),
        LayerKind(
            "separable convolution",
            "k · n · d + n · d²",
            "",
            "",
            _separable,
            _separable,
            _contiguous,
        ),
        LayerKind(
            "restricted self-attention",
            "r · n · d",
            "1",
            "n / r",
            lambda s: s.r * s.n * s.d,
            lambda s: _attention(s, window(s).width),
            _restricted,
        ),
    )
}
"""The rows, by name: Table 1's, and of its section 4 what contiguous and separable kernels cost."""
