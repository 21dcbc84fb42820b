import pytest
import torch

from heedful.kernels.native.layers import log_probabilities
from heedful.kernels.native.product import (
    NativeBf16Linear,
    NativeFp32Linear,
    NativeInt8Linear,
    can_multiply_bf16,
)


@pytest.mark.parametrize("rows", [1, 3, 40, 200])
@pytest.mark.parametrize("vocabulary", [1, 9, 1000])
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("kind", [NativeFp32Linear, NativeBf16Linear, NativeInt8Linear])
def test_log_probabilities_are_those_of_torch(compiled, vocabulary, rows, threads, kind):
    del compiled
    if kind is NativeBf16Linear and not can_multiply_bf16():
        return
    generator = torch.Generator().manual_seed(vocabulary)
    weight = torch.randn(vocabulary, 32, generator=generator)
    for bias in (None, torch.randn(vocabulary, generator=generator)):
        linear = kind(weight, bias)
        states = torch.randn(rows, 32, generator=generator) * 3
        expected = torch.log_softmax(linear(states), dim=1)
        before = torch.get_num_threads()
        try:
            torch.set_num_threads(threads)
            found = log_probabilities(linear, states)
        finally:
            torch.set_num_threads(before)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)
