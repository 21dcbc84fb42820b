import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.kernels.dropout import Dropout, draw_seed, keep_mask


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_drops_the_right_share_and_keeps_the_mean(dtype):
    torch.manual_seed(1)
    dropout = Dropout(0.3)
    x = torch.ones(400, 500, dtype=dtype)
    out = dropout(x)
    assert float((out == 0).float().mean()) == pytest.approx(0.3, abs=0.005)
    assert float(out.float().mean()) == pytest.approx(1.0, abs=0.01)


def test_dropout_gradients_pass_where_the_values_passed():
    torch.manual_seed(1)
    x = torch.randn(50, 50, requires_grad=True)
    out = Dropout(0.5)(x)
    out.sum().backward()
    torch.testing.assert_close(out.detach(), x.detach() * x.grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_adding_what_dropout_leaves_equals_adding_it_afterwards(dtype):
    x, y = (torch.randn(50, 50).to(dtype).requires_grad_() for _ in range(2))
    upstream = torch.randn(50, 50).to(dtype)
    results = []
    for sum_of in (lambda dropout: x + dropout(y), lambda dropout: dropout.add(x, y)):
        torch.manual_seed(1)
        out = sum_of(Dropout(0.3))
        results.append((out.detach(), *torch.autograd.grad(out, (x, y), upstream)))
    close = {"atol": 0.03, "rtol": 0.01} if dtype == torch.bfloat16 else {}
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, **close)
    assert torch.equal(Dropout(0.3).eval().add(x, y), x + y)


def test_dropout_repeats_under_the_same_seed_and_differs_otherwise():
    shape = torch.Size([100])
    torch.manual_seed(7)
    first, second = keep_mask(shape, 0.5), keep_mask(shape, 0.5)
    torch.manual_seed(7)
    assert torch.equal(keep_mask(shape, 0.5), first)
    assert not torch.equal(first, second)


@given(st.lists(st.integers(0, 5), min_size=0, max_size=3), st.floats(0.0, 0.9))
def test_dropout_masks_have_any_shape(sizes, probability):
    assert keep_mask(torch.Size(sizes), probability).shape == torch.Size(sizes)


def test_dropout_does_nothing_when_not_training():
    x = torch.randn(3, 3)
    assert Dropout(0.5).eval()(x) is x


@pytest.mark.parametrize("is_compiled", [True, False])
def test_a_probability_next_to_one_keeps_some(monkeypatch, is_compiled):
    if not is_compiled:
        monkeypatch.setattr("heedful.kernels.dropout.native_products", lambda: None)
    torch.manual_seed(1)
    x = torch.ones(1 << 20)
    kept = Dropout(1 - 2**-20).train()(x)
    assert 0 < (kept != 0).sum() < 100
    assert kept.max() == 1 << 16  # a 65,536th is kept


def test_seeds_are_drawn_on_the_processor_whatever_device_is_the_default():
    with torch.device("meta"):
        assert draw_seed() >= 0
