"""Where the time of a search goes: the parts of a model, and what its products take alone."""

import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from heedful.bench.own_products import products_alone
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.inference.compiled import (
    CompiledDecoder,
    CompiledEncoder,
    CompiledOutput,
    products_of,
)
from heedful.model.inference.optimize import is_compiled
from heedful.model.inference.quantized import PrepackedCrossAttention
from heedful.model.native.product import NativeLinear

_PARTS = {
    "encode": "encoder",
    "start": "keys and values of the source",
    "step": "layers of the decoder",
    "log_probabilities": "output and softmax",
}
_BETWEEN = "best continuations and all between"
# As the compiled functions multiply with one thread; the median of some repetitions counts.
_BLOCK, _REPEATS = 256, 3


def profile_search(model: EncoderDecoder, work: Callable[[], object]) -> dict[str, Any]:
    """
    Time the parts of a model in a search by one thread.

    `work`: searches with `model`. Returns `profile`, the share of each part, and `products alone`,
    the `seconds` that the matrix products of a pass take when nothing is between them, with their
    share `of a pass`.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with _timed(model) as (spent, rows):
            began = time.perf_counter()
            work()
            whole = time.perf_counter() - began
        alone = _products_of(model, rows) if is_compiled(model) else products_alone(work)
    finally:
        torch.set_num_threads(threads)
    parts = {name: spent[part] / whole for part, name in _PARTS.items()}
    return {
        "profile": parts | {_BETWEEN: 1 - sum(parts.values())},
        "products alone": {"seconds": alone, "of a pass": alone / whole},
    }


@contextmanager
def _timed(model: EncoderDecoder) -> Iterator[tuple[dict[str, float], dict[str, Counter[int]]]]:
    """Sum up the seconds of each part, and count how often it had so many rows."""
    spent: dict[str, float] = defaultdict(float)
    rows: dict[str, Counter[int]] = defaultdict(Counter)

    def timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            began = time.perf_counter()
            found = function(*arguments)
            spent[part] += time.perf_counter() - began
            rows[part][_rows(part, arguments)] += 1
            return found

        return call

    for part in _PARTS:
        setattr(model, part, timed(part, getattr(model, part)))
    try:
        yield spent, rows
    finally:
        for part in _PARTS:
            delattr(model, part)  # the method of the class again


def _rows(part: str, arguments: Sequence[Any]) -> int:
    """Count the rows that a part multiplies: of source tokens, or of hypotheses."""
    if part == "start":
        states: Tensor = arguments[0].states
        return states.shape[:-1].numel()
    if part == "step":
        tokens: Tensor = arguments[1]
        return tokens.numel()
    x: Tensor = arguments[0]
    return x.numel() if part == "encode" else x.shape[:-1].numel()


def _products_of(model: EncoderDecoder, rows: Mapping[str, Counter[int]]) -> float:
    """Make the products of all compiled functions again, layer after layer."""
    encoder, decoder = model.encoder, model.decoder
    # `is_compiled` has seen to it
    assert isinstance(encoder, CompiledEncoder) and isinstance(decoder, CompiledDecoder)
    assert isinstance(model.output, CompiledOutput)
    of_source = (layer.cross_attention for layer in decoder.layers)
    products: dict[str, Iterable[nn.Module]] = {
        "encode": (one for layer in encoder.layers for one in products_of(layer)),
        "start": (one.kv_proj for one in of_source if isinstance(one, PrepackedCrossAttention)),
        "step": (one for layer in decoder.layers for one in products_of(layer)),
        "log_probabilities": (model.output.linear,),
    }
    native = {
        part: [one for one in each if isinstance(one, NativeLinear)]
        for part, each in products.items()
    }
    return sum(
        times * _seconds(native[part], count)
        for part, counts in rows.items()
        for count, times in counts.items()
    )


def _seconds(products: Sequence[NativeLinear], rows: int) -> float:
    """Time products of so many rows, one after the other, a block of rows after the other."""
    inputs = {one.inner: torch.rand(min(rows, _BLOCK), one.inner) for one in products}
    whole, rest = divmod(rows, _BLOCK)
    sizes = [*[_BLOCK] * whole, *[rest] * bool(rest)]
    spent = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        for size in sizes:
            for one in products:
                one(inputs[one.inner][:size])
        spent.append(time.perf_counter() - began)
    return statistics.median(spent)
