"""Peak memory of the tensors that exist at the same time during a computation."""

import weakref
from collections.abc import Callable
from typing import Any

from heedful.kernels.api import Arguments, observe_operations, tensors_in


class _Allocations:
    """Bytes of the storages that operations have created and that are not freed yet."""

    def __init__(self) -> None:
        self.held, self.peak = 0, 0
        self._known: set[int] = set()

    def observe(self, function: Any, arguments: Arguments) -> object:
        """Compute an operation, and count the new storages in its result."""
        args, kwargs = arguments
        # torch keeps one Python object for a storage as long as the storage lives
        inputs = [x.untyped_storage() for x in tensors_in((args, kwargs))]
        out = function(*args, **kwargs)
        for x in tensors_in(out):
            storage = x.untyped_storage()  # a view shares the storage of its tensor
            number = id(storage)
            if number not in self._known and all(storage is not part for part in inputs):
                self._known.add(number)
                self.held += storage.nbytes()
                weakref.finalize(storage, self._free, number, storage.nbytes())
        self.peak = max(self.peak, self.held)
        return out

    def _free(self, number: int, size: int) -> None:
        self._known.discard(number)
        self.held -= size


def peak_bytes(function: Callable[[], object]) -> int:
    """Return the peak memory in bytes of the tensors that a function creates, results included."""
    allocations = _Allocations()
    with observe_operations(allocations.observe):
        function()
    return allocations.peak
