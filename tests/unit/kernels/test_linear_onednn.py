import torch

from heedful.kernels import product_rates as benchmark
from heedful.kernels.linear import has_onednn_kernel, linear_forward


def test_a_product_with_its_bias_and_relu_is_that_of_the_definition():
    x, weight, bias = torch.randn(5, 7), torch.randn(3, 7), torch.randn(3)
    expected = x @ weight.T + bias
    torch.testing.assert_close(linear_forward(x, weight, bias), expected, atol=1e-5, rtol=1e-5)
    found = linear_forward(x, weight, bias, relu=True)
    torch.testing.assert_close(found, expected.clamp(min=0), atol=1e-5, rtol=1e-5)


def test_types_that_onednn_does_not_multiply_go_to_torch():
    assert not has_onednn_kernel(torch.ones(1, dtype=torch.float64))
    x = torch.randn(2, 3, dtype=torch.float64)
    assert torch.equal(linear_forward(x, x), x @ x.T)


def test_the_rate_of_products_is_that_of_this_kernel(monkeypatch, small_products):
    seen = []

    def multiply(x, weight):
        seen.append(x.dtype)
        return linear_forward(x, weight)

    monkeypatch.setattr(benchmark, "linear_forward", multiply)
    benchmark.measured_rates(torch.device("cpu"))
    assert {*seen} == {torch.float32, torch.bfloat16}
