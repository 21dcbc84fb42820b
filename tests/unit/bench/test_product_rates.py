"""Rates of matrix products beside a comparison."""

import torch

from heedful.bench.product_rates import measure_product_rates
from heedful.kernels.native.product import native_products


def test_every_precision_has_a_rate(small_products):
    device = torch.device("cpu")
    assert measure_product_rates(device, 0.0).keys() == {"fp32", "bf16"}
    rates = measure_product_rates(device, 0.05, with_int8=True)
    assert all(rate > 0 for rate in rates.values())
    assert ("int8" in rates) == (native_products() is not None)
