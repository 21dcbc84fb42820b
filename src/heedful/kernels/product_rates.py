"""
A benchmark of matrix multiplication, which chooses between fp32 and bf16.

The name of a device does not show which precision is fast. On some processors multiplication in
bf16 is five times as fast as in fp32; on other processors it is emulated and far slower. So a short
benchmark measures both, once for each processor, number of threads and torch version. The result is
stored in the user's cache folder. The benchmark chooses bf16 only if it is clearly faster.
"""

import json
import math
import time
from contextlib import suppress

import torch

from heedful.errors import SettingError
from heedful.kernels.linear import linear_forward
from heedful.kernels.torch_internals import is_plain_torch
from heedful.machine.devices import processor_of
from heedful.machine.processor import cache_folder, read_cached, write_cached

PRECISIONS = ("auto", "fp32", "bf16", "int8")
CLEARLY_FASTER = 1.3
_FILE = "products.json"
# Rows, inputs and outputs of the multiplication. A GPU needs a large multiplication; otherwise the
# time to start it dominates.
_SHAPES = {"cpu": (2048, 512, 2048), "cuda": (8192, 4096, 4096)}
# Minimum and maximum number of runs of a measurement, and the seconds after which the minimum is
# enough.
_FEWEST, _ENOUGH, _BRIEFLY = 2, 6, 0.2


def resolve_precision(precision: str, device: torch.device) -> str:
    """Return the precision of a setting; ``auto`` becomes ``fp32`` or ``bf16``."""
    # The measurement takes some 50 ms on a CPU the first time, and is cached.
    if precision not in PRECISIONS:
        raise SettingError(f"a precision must be {' or '.join(PRECISIONS)}, but is {precision!r}.")
    if precision != "auto":
        return precision
    rates = product_rates(device)
    return "bf16" if rates["bf16"] >= CLEARLY_FASTER * rates["fp32"] else "fp32"


def product_rates(device: torch.device) -> dict[str, float]:
    """Measure the rate of multiplication in both precisions, or read the cached measurement."""
    key = _cache_key(processor_of(device), torch.get_num_threads(), torch.__version__)
    if is_plain_torch():
        key += " | plain"
    cache = _read_cache()
    if key not in cache:
        cache[key] = measured_rates(device)
        _write_cache(cache)
    return cache[key]


def measured_rates(device: torch.device, seconds: float = 0.0) -> dict[str, float]:
    """Measure the rate of multiplication in both precisions, without the cache."""
    return {
        "fp32": _rate(torch.float32, device, seconds),
        "bf16": _rate(torch.bfloat16, device, seconds),
    }


def remembered_rates(processor: str, threads: int, version: str) -> dict[str, float] | None:
    """Look up a cached measurement of multiplication, in GFLOP/s; None if it is not cached."""
    return _read_cache().get(_cache_key(processor, threads, version))


def _rate(dtype: torch.dtype, device: torch.device, seconds: float) -> float:
    """
    Measure a matrix multiplication of a typical shape: the best of several runs, in GFLOP/s.

    The function uses the kernel of the models, which on a CPU may differ from torch's.
    """
    rows, inputs, outputs = _SHAPES[device.type]
    # random numbers instead of ones, because a GPU multiplies equal numbers faster
    drawn = torch.Generator(device).manual_seed(1)
    left = torch.rand(rows, inputs, generator=drawn, device=device).to(dtype)
    right = torch.rand(outputs, inputs, generator=drawn, device=device).to(dtype)
    best, tried, begin = float("inf"), 0, time.perf_counter()
    # The first run includes compilation. If a type is emulated, a run takes a quarter of a second,
    # and two runs are enough.
    while (
        tried < _FEWEST
        or (tried < _ENOUGH and time.perf_counter() < begin + _BRIEFLY)
        or time.perf_counter() < begin + seconds
    ):
        tried += 1
        started = time.perf_counter()
        linear_forward(left, right)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - started)
    return 2e-9 * rows * inputs * outputs / best


def _cache_key(processor: str, threads: int, version: str) -> str:
    """Return the cache key of a measurement."""
    return " | ".join((processor, f"{threads} threads", version))


def _read_cache() -> dict[str, dict[str, float]]:
    """Read cached measurements; invalid measurements count as missing."""
    try:
        cache = json.loads(read_cached(cache_folder() / _FILE))
    except (OSError, ValueError, RecursionError):
        return {}
    return {k: v for k, v in cache.items() if _are_rates(v)} if isinstance(cache, dict) else {}


def _are_rates(value: object) -> bool:
    """Return whether an object has the rates of both precisions."""
    return (
        isinstance(value, dict)
        and value.keys() == {"fp32", "bf16"}
        and all(isinstance(rate, float) and 0 < rate < math.inf for rate in value.values())
    )


def _write_cache(cache: dict[str, dict[str, float]]) -> None:
    """Cache measurements if possible."""
    with suppress(OSError):
        write_cached(cache_folder() / _FILE, json.dumps(cache, indent=2).encode())
