"""
The longest path between two positions, found by gradients.

A stack of layers connects an input to an output if the output has a nonzero derivative with respect
to the input. The longest of all shortest paths (Table 1, last column) is the minimum depth that
connects each output to all inputs that it may read. Within a recurrent layer the depth is the
number of steps through which gradients may pass.
"""

from collections.abc import Callable

import torch
from torch import nn

from heedful.families.table1 import LayerSizes, RunsByStep
from heedful.paper.layer_build import build_layer


def find_longest_path(name: str, s: LayerSizes, causal: bool) -> int | None:
    """
    Find the minimum depth at which every output depends on every input that it may read.

    Returns None if n layers do not connect them. Dilated convolutions that read both sides can
    reach past the ends of a sequence. They then skip positions, for example at length 20 with a
    kernel of 3.
    """
    return _least(lambda depth: _connects(name, s, causal, depth), s.n)


def _least(holds: Callable[[int], bool], most: int) -> int | None:
    """Find the smallest number that meets a condition; numbers below twice `most` are tried."""
    low, high = 0, 1
    while not holds(high):
        if high >= most:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _connects(name: str, s: LayerSizes, causal: bool, depth: int) -> bool:
    """Tell whether the last output and, if not causal, the first output depend on every input."""
    x = torch.ones(1, s.n, s.d, dtype=torch.float64, requires_grad=True)
    layer = _with_equal_weights(build_layer(name, s, causal))
    if isinstance(layer, RunsByStep):
        return _reaches_all(layer.unrolled(x, depth), x)
    out = x
    for number in range(depth):
        out = _with_equal_weights(build_layer(name, s, causal, number))(out)
    # outputs between the first and last are nearer to both ends
    ends = out[:, -1:] if causal else out[:, [0, -1]]
    return all(_reaches_all(end, x) for end in ends.unbind(1))


def _reaches_all(out: torch.Tensor, x: torch.Tensor) -> bool:
    """Tell whether an output has a nonzero derivative with respect to each position."""
    (gradient,) = torch.autograd.grad(out.sum(), x, retain_graph=True)
    return bool((gradient != 0).any(dim=2).all())


def _with_equal_weights(layer: nn.Module) -> nn.Module:
    """Set all weights of a layer to positive values, so that no two paths cancel each other."""
    with torch.no_grad():
        for weight in layer.parameters():
            weight.fill_(1 / weight.size(-1))
    return layer.double()
