"""
Products of a layer that wait for each other, and all of its multiply-adds, counted as they happen.

The sequential operations of Table 1 are the longest chain of products of which each needs the
result of the one before.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from heedful.paper.layer_build import RecurrenceUnderTest, build_layer
from heedful.paper.layer_kinds import LayerSizes


class CountedProducts(NamedTuple):
    """What a layer multiplies."""

    chain: int
    """Products that wait for each other."""
    multiply_adds: int
    """Multiply-adds of all products."""


class ProductChains(TorchDispatchMode):
    """Follows for each tensor how many products it waits for."""

    def __init__(self) -> None:
        super().__init__()
        self.longest = 0
        # A view shares the storage of its tensor. The storage itself is kept too: another one may
        # not get its address.
        self._chains: dict[int, tuple[int, Any]] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        chain = max((self._chain(x) for x in tree_leaves((args, kwargs))), default=0)
        chain += func._overloadpacket in flop_registry
        out = func(*args, **kwargs)
        self.longest = max(self.longest, chain)
        for x in tree_leaves(out):
            if isinstance(x, Tensor):
                storage = x.untyped_storage()
                self._chains[storage._cdata] = max(chain, self._chain(x)), storage
        return out

    def _chain(self, x: object) -> int:
        """Return how many products a tensor waits for."""
        if not isinstance(x, Tensor):
            return 0
        return self._chains.get(x.untyped_storage()._cdata, (0, None))[0]


def count_products(name: str, s: LayerSizes) -> CountedProducts:
    """Count the products of a layer without computing them."""
    # On torch's device without numbers every kernel is torch's own, which its counter knows.
    with torch.device("meta"):
        layer, x = build_layer(name, s), torch.empty(1, s.n, s.d)
        chains = ProductChains()
        with torch.no_grad(), FlopCounterMode(display=False) as counter, chains:
            layer.unrolled(x) if isinstance(layer, RecurrenceUnderTest) else layer(x)
    return CountedProducts(chains.longest, counter.get_total_flops() // 2)
