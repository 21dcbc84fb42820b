"""
Observation of torch's operations while they run.

Torch's dispatcher shows every operation, including operations of a backward pass. If torch lacks
the dispatch mode, the documented function mode shows the calls that Python makes. In this mode a
composed function or a backward pass is one call.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

from heedful.kernels.torch_internals import internal

Arguments = tuple[Sequence[Any], Mapping[str, Any]]
"""Positional and keyword arguments."""
Observer = Callable[[Any, Arguments], object]
"""Receives a function and its arguments, calls it and returns its result."""

_PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "convolution", "_linear_pointwise"}
# names that Python calls; the dispatcher resolves them to the names above
_CALLS = {"matmul", "__matmul__", "__rmatmul__", "linear", "conv1d", "einsum"}


def observe_operations(observer: Observer) -> AbstractContextManager[object]:
    """Pass each operation within the context to an observer, which computes its result."""
    mode = internal("torch.utils._python_dispatch.TorchDispatchMode")
    if mode is None:
        return _Calls(observer)

    class Operations(mode):  # type: ignore[misc, valid-type]  # looked up, so not known
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
        ) -> object:
            return observer(function, (args, kwargs or {}))

    return Operations()


class _Calls(TorchFunctionMode):
    """A mode that passes each call of a function of torch to an observer."""

    def __init__(self, observer: Observer) -> None:
        super().__init__()
        self.observer = observer

    def __torch_function__(
        self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> object:
        return self.observer(function, (args, kwargs or {}))


def operation_name(function: Any) -> str:
    """Name an operation without its library and overload: ``mm`` for ``aten::mm.out``."""
    if callable(name := getattr(function, "name", None)):
        return str(name()).partition("::")[2].partition(".")[0]
    return str(getattr(function, "__name__", ""))


def is_product(function: Any) -> bool:
    """Return whether an operation is a matrix product or a convolution."""
    return operation_name(function) in _PRODUCTS | _CALLS


def products_in_turn(function: Any) -> int:
    """Count the sequential matrix products of an operation."""
    # scores, then the weighted sum of the values; the dispatcher shows both products
    if operation_name(function) == "scaled_dot_product_attention":
        return 2
    return int(is_product(function))


def tensors_in(tree: object) -> Iterator[Tensor]:
    """Iterate over the tensors of arguments or results, which may be nested."""
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, Mapping):
        for part in tree.values():
            yield from tensors_in(part)
    elif isinstance(tree, list | tuple):
        for part in tree:
            yield from tensors_in(part)
