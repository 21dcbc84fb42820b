"""
Which precision is fast.

The name of a device does not tell. On some processors bf16 products run five times as fast as
fp32, on others they are emulated and far slower. So a short probe measures both, once for each
processor and torch version, and the result is kept in the user's cache folder. A faster way is
taken only when it wins clearly.
"""

import json
import math
import time
from contextlib import suppress

import torch

from heedful.errors import SettingError
from heedful.machine.devices import processor_of
from heedful.machine.processor import cache_folder, read_cached, write_cached

PRECISIONS = ("auto", "fp32", "bf16", "int8")
CLEARLY_FASTER = 1.3
_FILE = "machine.json"
_ROWS, _IN, _OUT = 2048, 512, 2048


def resolve_precision(precision: str, device: torch.device) -> str:
    """
    Turn a precision setting into 'fp32' or 'bf16'.

    Parameters
    ----------
    precision : {'auto', 'fp32', 'bf16'}
        The setting.
    device : torch.device
        Where products will run.

    Returns
    -------
    str
        `auto` gives bf16 where it is clearly faster.

    Notes
    -----
    The probe takes some 50 ms the first time and nothing after that.
    """
    if precision not in PRECISIONS:
        raise SettingError(f"a precision must be {' or '.join(PRECISIONS)}, but is {precision!r}.")
    if precision != "auto":
        return precision
    rates = product_rates(device)
    return "bf16" if rates["bf16"] >= CLEARLY_FASTER * rates["fp32"] else "fp32"


def product_rates(device: torch.device) -> dict[str, float]:
    """
    Measure matrix products in both precisions, or remember an earlier measurement.

    Parameters
    ----------
    device : torch.device
        Where to measure.

    Returns
    -------
    dict of str to float
        GFLOP/s for 'fp32' and 'bf16'.

    Notes
    -----
    Cached by processor, threads and torch version; a cache that cannot be written is no error.
    """
    key = _cache_key(processor_of(device), torch.get_num_threads(), torch.__version__)
    cache = _read_cache()
    if key not in cache:
        cache[key] = measured_rates(device)
        _write_cache(cache)
    return cache[key]


def measured_rates(device: torch.device, seconds: float = 0.0) -> dict[str, float]:
    """
    Measure matrix products in both precisions now.

    Parameters
    ----------
    device : torch.device
        Where to measure.
    seconds : float, default 0.0
        How long to go on in either, beyond the six products that are always tried; the best counts.

    Returns
    -------
    dict of str to float
        GFLOP/s for 'fp32' and 'bf16'.

    Notes
    -----
    Nothing is remembered: a benchmark compares with what the machine gives it today.
    """
    return {
        "fp32": _rate(torch.float32, device, seconds),
        "bf16": _rate(torch.bfloat16, device, seconds),
    }


def remembered_rates(processor: str, threads: int, version: str) -> dict[str, float] | None:
    """
    Look up an earlier measurement of matrix products.

    Parameters
    ----------
    processor : str
        As `describe_machine` names it, or the name of a GPU.
    threads : int
        Of the processor.
    version : str
        Of torch.

    Returns
    -------
    dict of str to float, or None
        GFLOP/s for 'fp32' and 'bf16'; None if this was never measured here.

    Notes
    -----
    Measures nothing. A run from another machine finds only what that machine has in common with
    this one.
    """
    return _read_cache().get(_cache_key(processor, threads, version))


def _rate(dtype: torch.dtype, device: torch.device, seconds: float) -> float:
    """Time one product of a typical shape: the best of several runs, in GFLOP/s."""
    left = torch.ones(_ROWS, _IN, dtype=dtype, device=device)
    right = torch.ones(_OUT, _IN, dtype=dtype, device=device)
    best, until, tried = float("inf"), time.perf_counter() + seconds, 0
    while tried < 6 or time.perf_counter() < until:
        tried += 1
        started = time.perf_counter()
        torch.nn.functional.linear(left, right)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - started)
    return 2e-9 * _ROWS * _IN * _OUT / best


def _cache_key(processor: str, threads: int, version: str) -> str:
    """Name what a measurement holds for."""
    return " | ".join((processor, f"{threads} threads", version))


def _read_cache() -> dict[str, dict[str, float]]:
    """Read earlier measurements; what is none counts as not there."""
    try:
        cache = json.loads(read_cached(cache_folder() / _FILE))
    except (OSError, ValueError, RecursionError):
        return {}
    return {k: v for k, v in cache.items() if _are_rates(v)} if isinstance(cache, dict) else {}


def _are_rates(found: object) -> bool:
    """Tell whether something are rates of both precisions."""
    return (
        isinstance(found, dict)
        and found.keys() == {"fp32", "bf16"}
        and all(isinstance(rate, float) and 0 < rate < math.inf for rate in found.values())
    )


def _write_cache(cache: dict[str, dict[str, float]]) -> None:
    """Keep measurements if there is a place for them."""
    with suppress(OSError):
        write_cached(cache_folder() / _FILE, json.dumps(cache, indent=2).encode())
