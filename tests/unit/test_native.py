"""Compiled functions are made once, kept, and done without where they cannot be had."""

import os
import stat
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.model.layouts import Int8Linear
from heedful.model.native.compile import NoLibrary, native_library
from heedful.model.native.layers import log_probabilities
from heedful.model.native.product import NativeLinear, can_multiply, load_products


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "heedful"


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def small_compiler(folder):
    """A compiler that ignores what it is given: a library of one function is made in no time."""
    (folder / "one.c").write_text("int lanes(void) { return 1; }\n", encoding="ascii")
    made = f'exec cc -shared -fPIC {folder}/one.c -o "$2"'
    return script(folder / "small", f'while [ "$1" != -o ]; do shift; done; {made}')


def test_a_library_is_compiled_once(cache, tmp_path, compiled, monkeypatch):
    del compiled
    monkeypatch.setenv("CC", small_compiler(tmp_path))
    native_library("steps")
    (kept,) = cache.iterdir()
    made = kept.stat().st_mtime_ns
    native_library("steps")
    assert [kept] == list(cache.iterdir())
    assert kept.stat().st_mtime_ns == made
    monkeypatch.setenv("CC", f"{tmp_path}/small -DOTHER")
    native_library("steps")
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("left", [0, 1, 63, 64, 4096, -1])
def test_a_library_that_was_cut_short_is_compiled_again(
    cache, tmp_path, compiled, monkeypatch, left
):
    del compiled
    monkeypatch.setenv("CC", small_compiler(tmp_path))
    native_library("steps")
    (kept,) = cache.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[:left])
    assert native_library("steps").lanes() == 1
    assert [kept] == list(cache.iterdir())
    assert kept.read_bytes() == whole


def test_a_library_that_others_could_have_written_is_not_loaded(
    cache, tmp_path, compiled, monkeypatch
):
    del compiled
    monkeypatch.setenv("CC", small_compiler(tmp_path))
    native_library("steps")
    (kept,) = cache.iterdir()
    kept.chmod(0o666)
    native_library("steps")
    assert kept.stat().st_mode & 0o777 == 0o600  # written anew
    cache.chmod(0o777)
    with pytest.raises(NoLibrary, match=r"heedful must not be writable by others.*mode 777"):
        native_library("steps")


def test_processes_that_compile_at_once_do_not_meet(cache, tmp_path, compiled):
    del compiled
    program = """
from heedful.model.native.compile import NoLibrary, native_library
input()
print(native_library("steps").lanes())
"""
    how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    variables = {**os.environ, "CC": small_compiler(tmp_path)}
    started = [
        subprocess.Popen([sys.executable, "-c", program], env=variables, **how) for _ in range(3)
    ]
    for process in started:
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.communicate()[0] for process in started] == ["1\n"] * 3
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize(
    ("compiler", "reason"),
    [
        ("no-such-compiler", "no C compiler 'no-such-compiler'"),
        ("false", "the compiler false failed"),
        ("", "no C compiler ''"),
        ('cc "', "CC must be a command"),
    ],
)
def test_without_a_compiler_there_is_no_library(cache, monkeypatch, compiler, reason):
    monkeypatch.setenv("CC", compiler)
    with pytest.raises(NoLibrary, match=reason):
        native_library("steps")
    assert not cache.exists() or not list(cache.iterdir())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('echo x > "$2"; exit 1', "failed: exit code 1"),
        ('echo x > "$2"', "file too short|invalid ELF"),
        # most of a library: loading it ends the process
        ('cc -shared {one} -o "$2" && truncate -s 5000 "$2"', "not a whole library"),
        ('cc -shared {one} -o "$2"', "has no most_levels, memory_for"),
    ],
)
def test_what_a_compiler_spoils_is_not_used(cache, tmp_path, compiled, monkeypatch, text, reason):
    del compiled
    small_compiler(tmp_path)
    text = text.replace("{one}", f"-fPIC {tmp_path}/one.c")
    broken = script(tmp_path / "broken", f'while [ "$1" != -o ]; do shift; done; {text}')
    monkeypatch.setenv("CC", broken)
    with pytest.raises(NoLibrary, match=reason):
        load_products()
    assert not list(cache.iterdir())


def test_it_can_be_turned_off(monkeypatch):
    monkeypatch.setenv("HEEDFUL_NATIVE", "0")
    with pytest.raises(NoLibrary, match="turned them off"):
        native_library("steps")


def test_the_library_leaves_the_smallest_numbers_alone(compiled):
    del compiled
    NativeLinear(torch.ones(2, 4), None)(torch.ones(2, 4))
    assert torch.tensor(1e-40) * 1.0 > 0


@pytest.fixture(scope="module", params=["", "-mno-avx512f -mno-avxvnni"])
def products(request, compiled, tmp_path_factory):
    """Compile the products for processors that know less, too."""
    del compiled
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("CC", f"cc {request.param}")
        return load_products()


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
