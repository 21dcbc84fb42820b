"""The time of a search in each part of the model, and in its matrix products alone."""

import ctypes
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from heedful.bench.own_products import products_alone
from heedful.experiments.process import time_repeats, torch_threads
from heedful.kernels.api import ROWS_OF_A_BLOCK, NativeLinear
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.inference import (
    CompiledDecoder,
    CompiledEncoder,
    CompiledOutput,
    PrepackedCrossAttention,
    is_compiled,
    products_of,
)

_PARTS = {
    "encode": "encoder",
    "start": "keys and values of the source",
    "step": "layers of the decoder",
    "log_probabilities": "output and softmax",
}
_BETWEEN = "best continuations and other work"
_REPEATS = 3  # repetitions of a pass and of each product; the median is used


def profile_search(model: EncoderDecoder, work: Callable[[], object]) -> dict[str, Any]:
    """
    Time the parts of a model in a search with one thread.

    `work`: a function that searches with `model`. Returns `profile`, the share of the time that
    each part takes. On a CPU, the result also has `products alone`: the `seconds` of a pass's
    matrix products without other operations, and their share `of a pass`. `products alone` is left
    out if only a part of the model is compiled.
    """
    device = model.device
    with torch_threads(1):
        with _time_parts(model, device) as (spent, rows):
            (total,) = time_repeats(work, 1)
        parts = {name: spent[part] / total for part, name in _PARTS.items()}
        result: dict[str, Any] = {"profile": parts | {_BETWEEN: 1 - sum(parts.values())}}
        if device.type != "cpu":
            return result
        alone: float | None = None
        if is_compiled(model):
            alone = _products_of(model, rows)
        elif not any(isinstance(module, NativeLinear) for module in model.modules()):
            alone = products_alone(work)
        if alone is None:
            return result  # a part of the products would be missing
        seconds = statistics.median(time_repeats(work, _REPEATS))
        return result | {"products alone": {"seconds": alone, "of a pass": alone / seconds}}


@contextmanager
def _time_parts(
    model: EncoderDecoder, device: torch.device
) -> Iterator[tuple[dict[str, float], dict[str, Counter[int]]]]:
    """Time each part of the model, and count its calls by the number of rows they compute."""
    spent: dict[str, float] = defaultdict(float)
    rows: dict[str, Counter[int]] = defaultdict(Counter)

    def time_part(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            _synchronize(device)
            began = time.perf_counter()
            result = function(*arguments)
            _synchronize(device)
            spent[part] += time.perf_counter() - began
            rows[part][_rows(part, arguments)] += 1
            return result

        return call

    for part in _PARTS:
        setattr(model, part, time_part(part, getattr(model, part)))
    try:
        yield spent, rows
    finally:
        for part in _PARTS:
            delattr(model, part)  # restores the method of the class


def _synchronize(device: torch.device) -> None:
    """Wait for the operations of a GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _rows(part: str, arguments: Sequence[Any]) -> int:
    """Count the rows that a part multiplies: source tokens or hypotheses."""
    if part == "start":
        states: Tensor = arguments[0].states
        return states.shape[:-1].numel()
    if part == "step":
        tokens: Tensor = arguments[1]
        return tokens.numel()
    x: Tensor = arguments[0]
    return x.numel() if part == "encode" else x.shape[:-1].numel()


def _products_of(model: EncoderDecoder, rows: Mapping[str, Counter[int]]) -> float:
    """Time the matrix products of all compiled functions, one layer after the other."""
    encoder, decoder = model.encoder, model.decoder
    # the caller has checked `is_compiled`
    assert isinstance(encoder, CompiledEncoder) and isinstance(decoder, CompiledDecoder)
    assert isinstance(model.output, CompiledOutput)
    of_source = (layer.cross_attention for layer in decoder.layers)
    products: dict[str, Iterable[nn.Module]] = {
        "encode": (product for layer in encoder.layers for product in products_of(layer)),
        "start": (attn.kv_proj for attn in of_source if isinstance(attn, PrepackedCrossAttention)),
        "step": (product for layer in decoder.layers for product in products_of(layer)),
        "log_probabilities": (model.output.linear,),
    }
    native = {
        part: [module for module in modules if isinstance(module, NativeLinear)]
        for part, modules in products.items()
    }
    return sum(
        times * _seconds(native[part], count)
        for part, counts in rows.items()
        for count, times in counts.items()
    )


def _seconds(products: Sequence[NativeLinear], rows: int) -> float:
    """Time a sequence of matrix products whose inputs have `rows` rows, in blocks of rows."""
    blocks, rest = divmod(rows, ROWS_OF_A_BLOCK)
    sizes = [*[ROWS_OF_A_BLOCK] * blocks, *[rest] * bool(rest)]
    calls = {size: [_call(product, size) for product in products] for size in {*sizes}}

    def multiply() -> None:
        for size in sizes:
            for call in calls[size]:
                call()

    return statistics.median(time_repeats(multiply, _REPEATS))


def _call(linear: NativeLinear, rows: int) -> Callable[[], object]:
    """Prepare a call to a C function, because Python's overhead is significant for few rows."""
    x, out = torch.rand(rows, linear.inner), torch.empty(rows, linear.outer)
    product, (rounded, largest) = linear.product, linear.room(rows)
    function = partial(
        linear.library.product_rows,
        *(ctypes.byref(product), x.data_ptr(), rows, linear.levels, int(linear.nonnegative), 1),
        *(rounded.data_ptr(), largest.data_ptr(), out.data_ptr()),
    )
    # The C function reads these objects by address, so they must stay alive.
    function.kept = x, out, product, rounded, largest  # type: ignore[attr-defined]
    return function
