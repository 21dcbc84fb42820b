"""Memory of the tensors that a computation holds at the same time."""

import weakref
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class _Allocations(TorchDispatchMode):
    """Follows the storages that operations make, until nothing holds them."""

    def __init__(self) -> None:
        super().__init__()
        self.held, self.peak = 0, 0
        self._known: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        given = {x.untyped_storage()._cdata for x in _tensors((args, kwargs or {}))}
        out = func(*args, **(kwargs or {}))
        for x in _tensors(out):
            storage = x.untyped_storage()  # a view shares that of its tensor
            if storage._cdata not in given | self._known:
                self._known.add(storage._cdata)
                self.held += storage.nbytes()
                weakref.finalize(storage, self._free, storage._cdata, storage.nbytes())
        self.peak = max(self.peak, self.held)
        return out

    def _free(self, storage: int, size: int) -> None:
        self._known.discard(storage)
        self.held -= size


def _tensors(tree: object) -> list[Tensor]:
    return [x for x in tree_leaves(tree) if isinstance(x, Tensor)]


def peak_bytes(function: Callable[[], object]) -> int:
    """Return the most bytes that a function's new tensors have at a time, its results included."""
    with _Allocations() as allocations:
        function()
    return allocations.peak
