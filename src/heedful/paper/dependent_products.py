"""
Products of a layer that wait for each other, and all of its multiply-adds, counted as they happen.

The sequential operations of Table 1 are the longest chain of products in which each needs the
result of the one before.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from heedful.families.table1 import LayerSizes, RunsByStep
from heedful.kernels.api import Arguments, observe_operations, products_in_turn, tensors_in
from heedful.paper.layer_build import build_layer


class CountedProducts(NamedTuple):
    """What a layer multiplies."""

    chain: int
    """The number of products that wait for each other."""
    multiply_adds: int
    """Multiply-adds of all products."""


class ProductChains:
    """Tracks how many products each tensor waits for."""

    def __init__(self) -> None:
        self.longest = 0
        # A view shares the storage of its tensor. The storage itself is kept too: another one may
        # not get its number.
        self._chains: dict[int, tuple[int, Any]] = {}

    def observe(self, function: Any, arguments: Arguments) -> object:
        """Compute an operation and lengthen the chains of its inputs."""
        args, kwargs = arguments
        chain = max((self._chain(x) for x in tensors_in((args, kwargs))), default=0)
        chain += products_in_turn(function)
        out = function(*args, **kwargs)
        self.longest = max(self.longest, chain)
        for x in tensors_in(out):
            storage = x.untyped_storage()
            self._chains[id(storage)] = max(chain, self._chain(x)), storage
        return out

    def _chain(self, x: Tensor) -> int:
        """Return how many products a tensor waits for."""
        return self._chains.get(id(x.untyped_storage()), (0, None))[0]


def count_products(name: str, s: LayerSizes) -> CountedProducts:
    """Count the products of a layer without computing them."""
    # On torch's device without numbers every kernel is torch's own, which its counter knows.
    with torch.device("meta"):
        layer, x = build_layer(name, s), torch.empty(1, s.n, s.d)
        chains = ProductChains()
        observed = observe_operations(chains.observe)
        with torch.no_grad(), FlopCounterMode(display=False) as counter, observed:
            layer.unrolled(x) if isinstance(layer, RunsByStep) else layer(x)
    return CountedProducts(chains.longest, counter.get_total_flops() // 2)
