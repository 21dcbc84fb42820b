import inspect

import pytest
import torch

from heedful.kernels.native.product import native_products
from heedful.kernels.recurrent import lstm_cell, plain_lstm_cell


def inputs(rows, width, dtype=torch.float32, size=3.0):
    """The two parts of the gates, and c."""
    torch.manual_seed(rows + width)
    return [
        torch.randn(rows, columns, dtype=dtype) * size for columns in (4 * width, 4 * width, width)
    ]


def run(cell, tensors, upstream):
    """The results of a cell, and the gradients of its inputs."""
    leaves = [x.detach().requires_grad_() for x in tensors]
    out = cell(*leaves)
    return [*out, *torch.autograd.grad(out, leaves, [x.to(out[0].dtype) for x in upstream])]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("rows", "width"), [(1, 1), (3, 7), (2, 33), (70, 200)])
def test_a_compiled_cell_is_as_exact_as_the_plain_one(rows, width, dtype):
    tensors, upstream = inputs(rows, width, dtype), torch.randn(2, rows, width)
    exact = run(plain_lstm_cell, [x.double() for x in tensors], upstream.to(dtype))
    step = torch.finfo(dtype).eps
    for compiled, plain, expected in zip(
        run(lstm_cell, tensors, upstream),
        run(plain_lstm_cell, tensors, upstream),
        exact,
        strict=True,
    ):
        assert compiled.dtype == dtype
        largest = (plain.double() - expected).abs().max()
        assert (compiled.double() - expected).abs().max() <= largest + 2 * step


def test_small_numbers_keep_their_digits():
    part = torch.logspace(-30, 0, 400).unsqueeze(1)
    tensors = [torch.cat([part * 0] * 2 + [part, part * 0], dim=1), torch.zeros(400, 4), part * 0]
    h, c = lstm_cell(*tensors)
    torch.testing.assert_close(c, torch.tanh(part) / 2, rtol=1e-6, atol=0)
    torch.testing.assert_close(h, torch.tanh(torch.tanh(part) / 2) / 2, rtol=1e-6, atol=0)


def test_large_numbers_saturate_and_undefined_ones_stay():
    for value in (1e4, -1e4, float("inf"), float("-inf")):
        tensors = [torch.full((1, 4), value), torch.zeros(1, 4), torch.ones(1, 1)]
        for compiled, plain in zip(lstm_cell(*tensors), plain_lstm_cell(*tensors), strict=True):
            torch.testing.assert_close(compiled, plain)
    for place in range(3):
        tensors = inputs(1, 1)
        tensors[place] = tensors[place] * float("nan")
        assert all(torch.isnan(x).all() for x in run(lstm_cell, tensors, torch.ones(2, 1, 1))[:2])


def test_numbers_need_not_lie_side_by_side():
    tensors = [x.t().contiguous().t() for x in inputs(5, 6)]
    ordered = [x.contiguous() for x in tensors]
    upstream = torch.randn(2, 6, 5).transpose(1, 2)
    for apart, beside in zip(
        run(lstm_cell, tensors, upstream), run(lstm_cell, ordered, upstream), strict=True
    ):
        assert torch.equal(apart, beside)


@pytest.mark.parametrize("steps", [1, 2, 12])
def test_second_derivatives_equal_those_of_the_plain_cell(steps):
    x, weight = torch.randn(4, 20), torch.randn(20, 5) / 4
    results = []
    for cell in (lstm_cell, plain_lstm_cell):
        leaves = [part.clone().requires_grad_() for part in (x, weight, torch.ones(4, 5))]
        h = c = leaves[2]  # one tensor is an ancestor of all inputs, and both states at first
        for _ in range(steps):
            h, c = cell(leaves[0], h @ leaves[1].t(), c)
        first = torch.autograd.grad(h.square().sum() + c.sum(), leaves, create_graph=True)
        second = torch.autograd.grad(sum(part.square().sum() for part in first), leaves)
        results.append([*first, *second])
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


def test_states_without_gradients_are_no_obstacle_to_second_derivatives():
    found = []
    for cell in (lstm_cell, plain_lstm_cell):
        x, zero = torch.linspace(-1, 1, 24).view(3, 8).requires_grad_(), torch.zeros(3, 2)
        h, _ = cell(*cell_inputs(cell, x, zero))
        (first,) = torch.autograd.grad(h.square().sum(), x, create_graph=True)
        found.append(torch.autograd.grad(first.square().sum(), x)[0])
    torch.testing.assert_close(*found)


def cell_inputs(cell, x, zero):
    """The inputs of a second step, after one from a zero state."""
    h, c = cell(x, torch.zeros_like(x), zero)
    return x, torch.cat([h] * 4, dim=1), c


def test_a_search_saves_nothing_and_computes_the_same():
    tensors = inputs(6, 9)
    with torch.no_grad():
        alone = lstm_cell(*tensors)
    for one, other in zip(alone, lstm_cell(*(x.requires_grad_() for x in tensors)), strict=True):
        assert torch.equal(one, other) and not one.requires_grad


def test_the_number_of_threads_does_not_change_the_result():
    tensors, upstream, before = inputs(40, 8), torch.randn(2, 40, 8), torch.get_num_threads()
    try:
        results = []
        for threads in (1, 3):
            torch.set_num_threads(threads)
            results.append(run(lstm_cell, tensors, upstream))
    finally:
        torch.set_num_threads(before)
    assert all(map(torch.equal, *results))


def test_shapes_that_broadcast_use_the_plain_cell(monkeypatch):
    gates, _, c = inputs(5, 3)
    compiled, plain = inspect.unwrap(lstm_cell), inspect.unwrap(plain_lstm_cell)
    monkeypatch.setattr("heedful.kernels.recurrent.plain_lstm_cell", plain)
    for parts in ((gates[:1], gates, c), (gates, gates[:1], c), (gates, gates, c[:1])):
        for one, other in zip(compiled(*parts), plain(*parts), strict=True):
            assert torch.equal(one, other)
    for wrong in (c[:, :2], torch.cat([c, c], dim=1)):
        with pytest.raises(RuntimeError):
            compiled(gates, gates, wrong)


def test_one_result_alone_has_gradients():
    for chosen in (0, 1):
        found = []
        for cell in (lstm_cell, plain_lstm_cell):
            leaves = [x.requires_grad_() for x in inputs(3, 4)]
            found.append(torch.autograd.grad(cell(*leaves)[chosen].sum(), leaves))
        torch.testing.assert_close(*found)


def test_other_types_use_the_plain_cell(monkeypatch):
    assert native_products() is not None
    double = [x.double() for x in inputs(2, 3)]
    for compiled, plain in zip(lstm_cell(*double), plain_lstm_cell(*double), strict=True):
        assert torch.equal(compiled, plain)
    monkeypatch.setattr("heedful.kernels.recurrent.native_products", lambda: None)
    for compiled, plain in zip(
        lstm_cell(*inputs(2, 3)), plain_lstm_cell(*inputs(2, 3)), strict=True
    ):
        assert torch.equal(compiled, plain)
