"""The time of a function's matrix multiplications, each measured alone."""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from heedful.kernels.api import Arguments, is_product, observe_operations, operation_name

_SECONDS, _FEWEST = 0.02, 5


def products_alone(work: Callable[[], object]) -> float | None:
    """
    Compute how many seconds a function's matrix products take, without its other operations.

    Each product is repeated several times with its operands, and the median is taken. Returns None
    if this torch version hides the products of a backward pass (`heedful.kernels.operations`).
    """
    recorder = _ProductRecorder()
    with observe_operations(recorder.observe):
        work()
    if recorder.misses_products:
        return None
    return sum(
        count * _seconds(*recorder.calls[number]) for number, count in recorder.counts.items()
    )


class _ProductRecorder:
    """Counts of matrix products by the shapes of their operands, with an example call of each."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.calls: list[tuple[Any, Sequence[Any], Mapping[str, Any]]] = []
        self.misses_products = False
        self._numbers: dict[object, int] = {}

    def observe(self, function: Any, arguments: Arguments) -> object:
        """Compute an operation, and count it if it is a matrix product."""
        args, kwargs = arguments
        if operation_name(function) == "backward":  # one call that hides its products
            self.misses_products = True
        if is_product(function):
            named = ((name, _kind(value)) for name, value in kwargs.items())
            key = (function, *map(_kind, args), *named)
            number = self._numbers.setdefault(key, len(self.calls))
            if number == len(self.calls):
                self.calls.append((function, args, kwargs))
            self.counts[number] += 1
        return function(*args, **kwargs)


def _kind(value: object) -> object:
    """Build a key that distinguishes operands with different run times."""
    if not isinstance(value, torch.Tensor):
        return repr(value)
    strides = value.stride() if value.layout == torch.strided else ()
    return tuple(value.shape), strides, value.dtype, value.layout


def _seconds(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> float:
    """Return the median time of a matrix product."""
    spent: list[float] = []
    with torch.no_grad():
        function(*args, **kwargs)
        while len(spent) < _FEWEST or sum(spent) < _SECONDS:
            began = time.perf_counter()
            function(*args, **kwargs)
            spent.append(time.perf_counter() - began)
    return statistics.median(spent)
