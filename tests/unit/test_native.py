"""Compiled functions are made once, kept, and done without where they cannot be had."""

import stat

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.model.layouts import Int8Linear
from heedful.model.native.compile import native_library
from heedful.model.native.layers import log_probabilities
from heedful.model.native.product import NativeLinear, can_multiply, described

library = native_library.__wrapped__


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "heedful"


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_a_library_is_compiled_once(cache, compiled, monkeypatch):
    del compiled
    assert library("steps") is not None
    (kept,) = cache.iterdir()
    made = kept.stat().st_mtime_ns
    assert library("steps") is not None
    assert [kept] == list(cache.iterdir())
    assert kept.stat().st_mtime_ns == made
    monkeypatch.setenv("CC", "cc -DOTHER")
    assert library("steps") is not None
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("compiler", ["no-such-compiler", "false", ""])
def test_without_a_compiler_there_is_no_library(cache, monkeypatch, compiler):
    monkeypatch.setenv("CC", compiler)
    assert library("steps") is None
    assert not cache.exists() or not list(cache.iterdir())


def test_what_a_compiler_spoils_is_not_used(cache, tmp_path, monkeypatch):
    # writes half a library and fails
    broken = script(
        tmp_path / "broken", 'while [ "$1" != -o ]; do shift; done; echo x > "$2"; exit 1'
    )
    monkeypatch.setenv("CC", broken)
    assert library("steps") is None
    assert not list(cache.iterdir())
    # says that all is well, but what it wrote is no library
    broken = script(tmp_path / "liar", 'while [ "$1" != -o ]; do shift; done; echo x > "$2"')
    monkeypatch.setenv("CC", broken)
    assert library("steps") is None


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", encoding="ascii")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert library("steps") is None


def test_the_library_leaves_the_smallest_numbers_alone(compiled):
    del compiled
    NativeLinear(torch.ones(2, 4), None)(torch.ones(2, 4))
    assert torch.tensor(1e-40) * 1.0 > 0


def test_it_can_be_turned_off(monkeypatch):
    monkeypatch.setenv("HEEDFUL_NATIVE", "0")
    assert library("steps") is None


@pytest.fixture(scope="module", params=["", "-mno-avx512f -mno-avxvnni"])
def products(request, compiled, tmp_path_factory):
    """Compile the products for processors that know less, too."""
    del compiled
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("CC", f"cc {request.param}")
        found = described(library("steps"))
    if found is None:
        pytest.fail("the products could not be compiled")
    return found


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8, 21, 64])
@pytest.mark.parametrize(("inner", "outer"), [(4, 1), (64, 64), (100, 37), (512, 130)])
def test_products_are_those_of_torch(products, rows, inner, outer):
    generator = torch.Generator().manual_seed(rows + inner)
    weight = torch.randn(outer, inner, generator=generator)
    bias = torch.randn(outer, generator=generator)
    x = torch.randn(rows, inner, generator=generator) * torch.logspace(-2, 2, rows).unsqueeze(1)
    for some, rows_in, nonnegative in ((bias, x, 0), (None, x, 0), (bias, x.relu(), 1)):
        native = NativeLinear(weight, some, bool(nonnegative), products)
        plain = Int8Linear(weight, some, bool(nonnegative), levels=native.levels)
        expected = plain(rows_in)
        # a number in the middle between two steps may be rounded either way
        step = rows_in.abs().amax(1, keepdim=True) / plain.levels * weight.abs().max()
        assert ((native(rows_in) - expected).abs() <= 2 * step + 1e-5).all()
        assert (native(rows_in) - expected).norm() <= 1e-3 * expected.norm() + 1e-6


def test_a_row_of_zeros_gives_the_bias(compiled):
    del compiled
    bias = torch.randn(24)
    for nonnegative in (False, True):
        found = NativeLinear(torch.randn(24, 16), bias, nonnegative)(torch.zeros(3, 16))
        torch.testing.assert_close(found, bias.expand(3, -1))


@given(st.integers(1, 20), st.integers(0, 100))
def test_a_row_does_not_depend_on_its_neighbours(rows, seed):
    generator = torch.Generator().manual_seed(seed)
    linear = NativeLinear(torch.randn(24, 32, generator=generator), None)
    x = torch.randn(rows, 32, generator=generator) * torch.logspace(-3, 3, rows).unsqueeze(1)
    alone = torch.cat([linear(row.unsqueeze(0)) for row in x])
    torch.testing.assert_close(linear(x), alone, rtol=0, atol=0)


@pytest.mark.parametrize("rows", [1, 3, 40, 200])
@pytest.mark.parametrize("vocabulary", [1, 9, 1000])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_log_probabilities_are_those_of_torch(compiled, vocabulary, rows, threads):
    del compiled
    generator = torch.Generator().manual_seed(vocabulary)
    weight = torch.randn(vocabulary, 32, generator=generator)
    for bias in (None, torch.randn(vocabulary, generator=generator)):
        linear = NativeLinear(weight, bias)
        states = torch.randn(rows, 32, generator=generator) * 3
        expected = torch.log_softmax(linear(states), dim=1)
        before = torch.get_num_threads()
        try:
            torch.set_num_threads(threads)
            found = log_probabilities(linear, states)
        finally:
            torch.set_num_threads(before)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)


def test_a_width_that_the_instructions_cannot_take_is_refused():
    assert not can_multiply(6)
    with pytest.raises(RuntimeError, match="no product"):
        NativeLinear(torch.randn(8, 6), None)
