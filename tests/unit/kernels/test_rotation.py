import inspect

import pytest
import torch

from heedful.kernels.native.product import native_products
from heedful.kernels.rotation import can_rotate, plain_rotate, rotate


def table(positions, half):
    """Cosines and sines of some angles."""
    angles = torch.outer(torch.arange(positions).double(), 0.7 ** torch.arange(half))
    return angles.cos().float(), angles.sin().float()


def run(function, x, *arguments):
    """The rotated numbers, and the gradient of their weighted sum."""
    leaf = x.detach().clone().requires_grad_()
    out = function(leaf, *arguments)
    upstream = torch.linspace(-1, 1, out.numel()).view(out.shape).to(out.dtype)
    return out, torch.autograd.grad(out, leaf, upstream)[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("batch", "time", "heads", "half", "others"),
    [(1, 1, 1, 1, 0), (2, 5, 3, 4, 0), (3, 4, 2, 5, 7), (1, 300, 4, 32, 128)],
)
def test_a_compiled_rotation_equals_the_plain_one_bit_for_bit(
    batch, time, heads, half, others, dtype
):
    columns = 2 * half * heads
    x = torch.randn(batch, time, columns + others, dtype=dtype)
    every = torch.arange(time).unsqueeze(0)  # one row for all rows of the batch
    for numbers in (every, torch.randint(0, time, (batch, time))):
        about = (numbers, *table(time, half), columns)
        compiled, plain = run(rotate, x, *about), run(plain_rotate, x, *about)
        assert torch.equal(compiled[0], plain[0])
        assert torch.equal(compiled[0][..., columns:], x[..., columns:])
        torch.testing.assert_close(compiled[1], plain[1])


def test_the_number_of_threads_does_not_change_the_result():
    about = (torch.arange(50).unsqueeze(0), *table(50, 8))
    x, before = torch.randn(4, 50, 32), torch.get_num_threads()
    try:
        results = []
        for threads in (1, 3):
            torch.set_num_threads(threads)
            results.append(rotate(x, *about))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*results)


def test_numbers_need_not_lie_side_by_side():
    numbers, half = torch.arange(6).unsqueeze(0), 4
    both = torch.randn(2, 6, 48)
    for x in (both[..., 16:32], both.transpose(0, 1)[:, :, :16].transpose(0, 1), both[..., ::3]):
        about = (numbers, *table(6, half), 16)
        assert torch.equal(rotate(x, *about), plain_rotate(x, *about))
    one = torch.randn(1, 1, 16).expand(2, 6, 16)
    assert torch.equal(rotate(one, *about), plain_rotate(one, *about))
    assert rotate(both[:0, :, :16], *about).shape == (0, 6, 16)


def test_second_derivatives_equal_those_of_the_plain_rotation():
    about = (torch.arange(3).unsqueeze(0), *table(3, 2), 8)
    results = []
    for function in (rotate, plain_rotate):
        x = torch.linspace(-2, 2, 24).view(1, 3, 8).requires_grad_()
        (first,) = torch.autograd.grad(function(x, *about).pow(3).sum(), x, create_graph=True)
        results.append(torch.autograd.grad(first.square().sum(), x)[0])
    torch.testing.assert_close(*results)


def test_other_types_use_the_plain_rotation(monkeypatch):
    x, numbers = torch.randn(1, 3, 8), torch.arange(3).unsqueeze(0)
    cosines, sines = table(3, 2)
    assert native_products() is not None and can_rotate(x)
    assert not can_rotate(x.double()) and not can_rotate(x.to("meta"))
    wide = rotate(x.double(), numbers, cosines.double(), sines.double())
    assert torch.equal(wide, plain_rotate(x.double(), numbers, cosines.double(), sines.double(), 8))
    compiled = rotate(x, numbers, cosines, sines)
    monkeypatch.setattr("heedful.kernels.rotation.native_products", lambda: None)
    assert not can_rotate(x)
    assert torch.equal(rotate(x, numbers, cosines, sines), compiled)


def test_shapes_that_do_not_fit_end_in_an_error_of_torch(monkeypatch):
    monkeypatch.setattr("heedful.kernels.rotation.plain_rotate", inspect.unwrap(plain_rotate))
    cosines, sines = table(3, 2)
    for x, numbers, columns in (
        (torch.randn(1, 3, 6), torch.arange(3).unsqueeze(0), 6),
        (torch.randn(1, 3, 8), torch.arange(2).unsqueeze(0), 8),
        (torch.randn(3, 3, 8), torch.zeros(2, 3, dtype=torch.long), 8),
    ):
        with pytest.raises(RuntimeError):
            inspect.unwrap(rotate)(x, numbers, cosines, sines, columns)


def test_numbers_outside_the_table_are_not_read(monkeypatch):
    monkeypatch.setattr("heedful.kernels.rotation.plain_rotate", inspect.unwrap(plain_rotate))
    x, (cosines, sines) = torch.randn(1, 2, 8), table(3, 2)
    with pytest.raises(IndexError, match="out of"):
        rotate(x, torch.tensor([[0, 3]]), cosines, sines)
    short, long = (torch.tensor([[1, 2]], dtype=dtype) for dtype in (torch.int32, torch.int64))
    assert torch.equal(rotate(x, short, cosines, sines), rotate(x, long, cosines, sines))
