import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.kernels import linear as onednn
from heedful.kernels.linear import (
    bias_gradient,
    join,
    lie_side_by_side,
    linear,
    linear_forward,
    lookup,
    matmul,
    split,
)


def plainly(x, weight, bias, relu):
    """The definition."""
    out = x @ weight.T + (0 if bias is None else bias)
    return out.clamp(min=0) if relu else out


@given(
    st.lists(st.integers(1, 5), min_size=0, max_size=3),
    st.integers(1, 9),
    st.integers(1, 9),
    st.booleans(),
    st.booleans(),
    st.integers(0, 99),
)
def test_products_and_their_gradients_equal_torchs(batch, width, out, with_bias, relu, seed):
    torch.manual_seed(seed)
    leaves = [torch.randn(*batch, width), torch.randn(out, width)]
    leaves += [torch.randn(out)] if with_bias else []
    leaves = [leaf.requires_grad_() for leaf in leaves]
    x, weight, bias = (*leaves, None)[:3]
    upstream = torch.randn(*batch, out)
    results = []
    for function in (plainly, linear):
        product = function(x, weight, bias, relu)
        results.append((product.detach(), *torch.autograd.grad(product, leaves, upstream)))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("there", [True, False])
def test_every_type_is_multiplied_with_and_without_onednn(dtype, there, monkeypatch):
    monkeypatch.setattr(onednn, "_HAS_ONEDNN", there and onednn._HAS_ONEDNN)
    torch.manual_seed(1)
    x, weight, bias = torch.randn(70, 24), torch.randn(40, 24), torch.randn(40)
    gradient = torch.randn(70, 40)
    close = (
        {"atol": 0.05, "rtol": 0.02} if dtype == torch.bfloat16 else {"atol": 1e-4, "rtol": 1e-4}
    )
    given = [tensor.to(dtype) for tensor in (x, weight, bias, gradient)]
    x, weight, bias, gradient = (tensor.double() for tensor in given)
    found = (
        linear_forward(given[0], given[1], given[2], relu=True),
        matmul(given[3], given[1]),
        bias_gradient(given[3]),
    )
    expected = ((x @ weight.T + bias).relu(), gradient @ weight, gradient.sum(0))
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == dtype
        torch.testing.assert_close(one.double(), other, check_dtype=False, **close)


def test_gradients_that_nobody_wants_are_not_computed():
    x, weight = torch.randn(3, 4), torch.randn(5, 4, requires_grad=True)
    linear(x, weight).sum().backward()
    assert x.grad is None
    torch.testing.assert_close(weight.grad, x.sum(0).expand(5, 4))


def test_no_rows_give_no_rows():
    weight = torch.randn(5, 4, requires_grad=True)
    out = linear(torch.empty(0, 4), weight)
    out.sum().backward()
    assert out.shape == (0, 5)
    assert weight.grad.abs().sum() == 0


def test_parts_that_lie_side_by_side_are_joined_without_a_copy():
    x = torch.randn(2, 3, 9, requires_grad=True)
    parts = split(x, (2, 3, 4))
    assert [part.shape[2] for part in parts] == [2, 3, 4]
    assert lie_side_by_side(*parts) and not lie_side_by_side(parts[0], parts[2])
    joined = join(*parts)
    assert joined.data_ptr() == x.data_ptr() and torch.equal(joined, x)
    apart = join(parts[2], parts[0])
    assert torch.equal(apart, torch.cat((x[..., 5:], x[..., :2]), dim=2))


def test_gradients_of_parts_side_by_side_are_not_copied():
    x, upstream = torch.randn(2, 3, 9, requires_grad=True), torch.randn(2, 3, 9)
    received = []
    x.register_hook(received.append)
    torch.autograd.backward(split(x, (2, 3, 4)), upstream.split([2, 3, 4], dim=2))
    assert torch.equal(x.grad, upstream)
    assert received[0].data_ptr() == upstream.data_ptr()


def test_splitting_and_joining_have_second_derivatives():
    x = torch.randn(2, 2, 5, dtype=torch.float64, requires_grad=True)

    def mixed(x):
        first, second = split(x, (2, 3))
        return join(second.square(), first.tanh())

    assert torch.autograd.gradcheck(mixed, x) and torch.autograd.gradgradcheck(mixed, x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_lookup_by_ids_of_32_bits_has_the_same_gradient(dtype):
    ids = torch.tensor([[1, 3, 1], [0, 3, 3]])
    table = torch.randn(5, 4, dtype=dtype, requires_grad=True)
    weights = torch.randn(2, 3, 4, dtype=dtype)
    found, wanted = (
        torch.autograd.grad(lookup(x, table), table, weights)[0] for x in (ids.int(), ids)
    )
    assert torch.equal(found, wanted)
