"""The matrix products of some work, each timed alone."""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_NAMES = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "mkldnn::_linear_pointwise"}
_SECONDS, _FEWEST = 0.02, 5


def products_alone(work: Callable[[], object]) -> float:
    """
    Compute the seconds that the matrix products of some work take when nothing is between them.

    Each is made again, with the operands that it had, several times; the median counts.
    """
    with _ProductRecorder() as recorder:
        work()
    return sum(
        count * _seconds(*recorder.calls[number]) for number, count in recorder.counts.items()
    )


class _ProductRecorder(TorchDispatchMode):
    """Counts products by their shapes, and keeps a call of each."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[int] = Counter()
        self.calls: list[tuple[Any, Sequence[Any], Mapping[str, Any]]] = []
        self._numbers: dict[object, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        kwargs = kwargs or {}
        if func.name().partition(".")[0] in _NAMES:
            key = (func, *map(_kind, args), *((name, _kind(one)) for name, one in kwargs.items()))
            number = self._numbers.setdefault(key, len(self.calls))
            if number == len(self.calls):
                self.calls.append((func, args, kwargs))
            self.counts[number] += 1
        return func(*args, **kwargs)


def _kind(value: object) -> object:
    """Tell operands apart that take another time."""
    if not isinstance(value, torch.Tensor):
        return repr(value)
    strides = value.stride() if value.layout == torch.strided else ()
    return tuple(value.shape), strides, value.dtype, value.layout


def _seconds(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> float:
    """Time a product."""
    spent: list[float] = []
    with torch.no_grad():
        func(*args, **kwargs)
        while len(spent) < _FEWEST or sum(spent) < _SECONDS:
            began = time.perf_counter()
            func(*args, **kwargs)
            spent.append(time.perf_counter() - began)
    return statistics.median(spent)
