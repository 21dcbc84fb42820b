"""Rates of large matrix products, int8 included, measured between the rounds of a comparison."""

import time

import torch

from heedful.kernels.api import NativeInt8Linear, measured_rates, native_products

# The same matrix sizes as for the other precisions, in `heedful.kernels.product_rates`.
_ROWS, _IN, _OUT = 2048, 512, 2048


def measure_product_rates(
    device: torch.device, seconds: float, with_int8: bool = False
) -> dict[str, float]:
    """
    Measure matrix products in GFLOP/s by precision.

    `seconds`: time for each precision. `with_int8`: whether to add the rate of the compiled int8
    product, if it is available; this rate includes the quantization of the inputs.
    """
    rates = measured_rates(device, seconds)
    if with_int8 and device.type == "cpu" and native_products() is not None:
        rates["int8"] = _int8_rate(seconds)
    return rates


def _int8_rate(seconds: float) -> float:
    """Measure the rate of the compiled int8 product, the best of several runs."""
    product, x = NativeInt8Linear(torch.ones(_OUT, _IN), None), torch.ones(_ROWS, _IN)
    best, begin = float("inf"), time.perf_counter()
    while best == float("inf") or time.perf_counter() < begin + seconds:
        started = time.perf_counter()
        product(x)
        best = min(best, time.perf_counter() - started)
    return 2e-9 * _ROWS * _IN * _OUT / best
