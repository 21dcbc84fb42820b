"""
Counts of sequential matrix products and of multiply-adds, recorded while a layer runs.

The number of sequential operations in Table 1 is the length of the longest chain of products. Each
product of a chain needs the result of the previous product.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from heedful.families.table1 import LayerSizes, RunsByStep
from heedful.kernels.api import Arguments, observe_operations, products_in_turn, tensors_in
from heedful.paper.layer_build import build_layer


class CountedProducts(NamedTuple):
    """The longest chain of a layer's products, and the layer's number of multiply-adds."""

    chain: int
    """Length of the longest chain of products in which each needs the result of the one before."""
    multiply_adds: int
    """Multiply-adds of all products."""


class ProductChains:
    """Lengths of the chains of products that lead to each tensor."""

    def __init__(self) -> None:
        self.longest = 0
        # The keys are ids of storages, which a tensor shares with its views. Storages are kept
        # alive, so that no other storage gets the same id.
        self._chains: dict[int, tuple[int, Any]] = {}

    def observe(self, function: Any, arguments: Arguments) -> object:
        """Compute an operation, and record the chain that leads to its results."""
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
        """Return the length of the longest chain of products before a tensor."""
        return self._chains.get(id(x.untyped_storage()), (0, None))[0]


def count_products(name: str, s: LayerSizes) -> CountedProducts:
    """Count the matrix products of a layer without computing them."""
    # On the meta device every kernel is torch's own, and torch's counter supports these kernels.
    with torch.device("meta"):
        layer, x = build_layer(name, s), torch.empty(1, s.n, s.d)
        chains = ProductChains()
        observed = observe_operations(chains.observe)
        with torch.no_grad(), FlopCounterMode(display=False) as counter, observed:
            layer.unrolled(x) if isinstance(layer, RunsByStep) else layer(x)
    return CountedProducts(chains.longest, counter.get_total_flops() // 2)
