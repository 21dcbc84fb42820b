"""What tests of several packages need."""

import pytest


@pytest.fixture
def small_products(monkeypatch):
    """Measure rates of small matrix products, briefly; bf16 is slow on many processors."""
    from heedful.kernels import product_rates

    rate = product_rates._rate
    monkeypatch.setitem(product_rates._SHAPES, "cpu", (64, 64, 64))
    monkeypatch.setattr(product_rates, "_rate", lambda dtype, device, _: rate(dtype, device, 0.0))
