"""
The layers of Table 1, and the cost of each.

A model family can add a row for its own layer (`heedful.families.table1`).
"""

from collections.abc import Callable
from itertools import count

from heedful.families.table1 import LayerKind, LayerSizes, family_layers
from heedful.model.window import Window


def _steps(distance: int, reaches: Callable[[int], int]) -> int:
    """Count the layers whose reaches together cover a distance."""
    if distance == 0:
        return 1
    reach = 0
    for number in count():
        if reach >= distance:
            return number
        reach += reaches(number)
    raise AssertionError  # unreachable, because `count` never ends


def _contiguous(s: LayerSizes, causal: bool) -> int:
    """Compute ceil((n - 1) / reach); the reach is k - 1, or half of it if both sides are read."""
    return _steps(s.n - 1, lambda _: (s.k - 1) // (1 if causal else 2))


def _dilated_path(s: LayerSizes, causal: bool) -> int:
    """Compute ceil(log_k n); if both sides are read, ceil(log_k (2 n - 1)), for odd k."""
    span = s.k - 1
    return _steps(s.n - 1, lambda layer: span * s.k**layer if causal else span * s.k**layer // 2)


def _restricted_path(s: LayerSizes, causal: bool) -> int:
    """Compute ceil((n - 1) / reach); the reach is r - 1, or r // 2 if both sides are read."""
    return _steps(s.n - 1, lambda _: s.r - 1 if causal else s.r // 2)


def window(s: LayerSizes, causal: bool = False) -> Window:
    """Return the neighbors that a position of restricted self-attention sees."""
    neighbors = Window.before_and_at(s.r) if causal else Window.around(s.r)
    assert neighbors is not None
    return neighbors


def _attention(s: LayerSizes, keys: int) -> int:
    """Count multiply-adds of scores, weighted sums over `keys` keys, and four projections."""
    return 2 * s.n * keys * s.d + 4 * s.n * s.d**2


def _kernel_products(s: LayerSizes) -> int:
    """Count the multiply-adds of a convolution."""
    return s.k * s.n * s.d**2


def _separable(s: LayerSizes) -> int:
    """Count the multiply-adds of a kernel for each channel and of one map across all channels."""
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
        *family_layers(),
        LayerKind(
            "convolution",
            "k · n · d²",
            "1",
            "n / k",
            _kernel_products,
            _kernel_products,
            _contiguous,
        ),
        LayerKind(
            "dilated convolution",
            "k · n · d²",
            "1",
            "log_k n",
            _kernel_products,
            _kernel_products,
            _dilated_path,
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
            _restricted_path,
        ),
    )
}
"""The layers by name: the rows of Table 1, and the other kinds of convolution in section 4."""
