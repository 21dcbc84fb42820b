import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.kernels.dropout import Dropout, can_thin, native_add_thinned

LOW = np.uint64(0xFFFFFFFF)


def philox(seed, counters):
    """Salmon et al. 2011, Philox 4x32-10, of 64-bit counters: (counters, 4) words of 32 bits."""
    counters = np.asarray(counters, dtype=np.uint64)
    words = [counters & LOW, counters >> np.uint64(32), *np.zeros((2, len(counters)), np.uint64)]
    keys = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        low, high = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        first = (high >> np.uint64(32)) ^ words[1] ^ np.uint64(keys[0])
        third = (low >> np.uint64(32)) ^ words[3] ^ np.uint64(keys[1])
        words = [first, high & LOW, third, low & LOW]
        keys = [(key + step) & 0xFFFFFFFF for key, step in zip(keys, STEPS, strict=True)]
    return np.stack(words, axis=1).astype(np.uint32)


STEPS = (0x9E3779B9, 0xBB67AE85)


def bits_of(seed, count):
    """Sixteen bits of each element, as `dropout.h` says."""
    units = -(-count // 64)
    words = philox(seed, np.arange(8 * units)).reshape(units, 8, 2, 2)
    return words.swapaxes(1, 2).reshape(-1).view(np.uint16)[:count]


def test_the_plain_generator_is_that_of_the_known_answers():
    # The file kat_vectors of Random123 1.14, philox4x32 of 10 rounds, counter and key zero.
    assert [f"{word:08x}" for word in philox(0, [0])[0]] == [
        *("6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8")
    ]


@given(
    count=st.integers(0, 9000),
    seed=st.integers(0, 2**64 - 1),
    threshold=st.integers(0, 65535),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
    added=st.booleans(),
)
def test_values_and_gradients_are_those_of_the_plain_bits(count, seed, threshold, dtype, added):
    torch.manual_seed(1)
    x, y = (torch.randn(count).to(dtype).requires_grad_() for _ in range(2))
    found = native_add_thinned(x if added else None, y, seed, threshold, 1.25)
    kept = torch.from_numpy(bits_of(seed, count).astype(np.int32) >= threshold)
    plain = torch.where(kept, y.detach().float() * 1.25, 0.0) + (x.detach().float() * added)
    close = {"atol": 0.02, "rtol": 0.01} if dtype == torch.bfloat16 else {}
    torch.testing.assert_close(found.detach().float(), plain, **close)
    upstream = torch.randn(count).to(dtype)
    leaves = (y, x) if added else (y,)
    d_y, *d_x = torch.autograd.grad(found, leaves, upstream)
    torch.testing.assert_close(
        d_y.float(), torch.where(kept, upstream.float() * 1.25, 0.0), **close
    )
    assert all(torch.equal(one, upstream) for one in d_x)


def test_the_number_of_threads_changes_nothing():
    y, before, found = torch.randn(33, 501), torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(native_add_thinned(None, y, 5, 9000, 1.0))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])


@pytest.mark.parametrize("probability", [0.1, 0.5])
def test_what_is_kept_depends_on_no_neighbor_and_on_no_other_seed(probability):
    torch.manual_seed(3)
    x, dropout = torch.ones(2, 1_000_000), Dropout(probability)
    one, other = ((dropout(x) != 0).double() for _ in range(2))
    one, other = one.flatten() - one.mean(), other.flatten() - other.mean()
    assert float(one.square().mean()) == pytest.approx(probability * (1 - probability), rel=0.01)
    bound = 5 * probability * (1 - probability) / len(one) ** 0.5  # five standard errors
    for lag in (1, 2, 4, 8, 32, 64, 256, 1_000_000):
        assert abs(float((one[lag:] * one[:-lag]).mean())) < bound * (1 + lag / 1_000_000)
    assert abs(float((one * other).mean())) < bound


def test_dropout_is_the_same_under_the_same_seed_alone():
    x, dropout = torch.randn(40, 50), Dropout(0.3)
    torch.manual_seed(7)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(7)
    assert torch.equal(dropout(x), first) and not torch.equal(first, second)


def test_second_derivatives_are_those_of_the_plain_bits():
    y = torch.randn(300, requires_grad=True)
    kept = torch.from_numpy(bits_of(4, 300).astype(np.int32) >= 20_000)
    found = []
    for out in (native_add_thinned(None, y.square(), 4, 20_000, 2.0), 2 * kept * y.square()):
        (gradient,) = torch.autograd.grad((out**2).sum(), y, create_graph=True)
        found.append(torch.autograd.grad(gradient.square().sum(), y)[0])
    torch.testing.assert_close(*found)


def test_numbers_need_not_lie_side_by_side():
    y = torch.randn(30, 40).t()
    assert torch.equal(
        native_add_thinned(y, y, 3, 20_000, 2.0),
        native_add_thinned(y.contiguous(), y.contiguous(), 3, 20_000, 2.0),
    )


def test_other_types_and_shapes_go_another_way(monkeypatch):
    y = torch.zeros(3, 4)
    assert can_thin(None, y) and can_thin(y, y) and can_thin(None, y.bfloat16())
    assert not can_thin(None, y.double())
    assert not can_thin(y[0], y) and not can_thin(y.bfloat16(), y)
    monkeypatch.setattr("heedful.kernels.dropout.native_products", lambda: None)
    assert not can_thin(None, y)
