"""Compiled functions are made once, kept, and done without where they cannot be had."""

import stat

import pytest
import torch

from heedful.model.native.compile import native_library
from heedful.model.native.steps import NativeSteps, Rounded

library = native_library.__wrapped__


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "heedful"


@pytest.fixture(scope="module")
def native(compiled):
    del compiled
    return NativeSteps(127)


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_a_library_is_compiled_once(cache, native, monkeypatch):
    del native
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


def test_the_library_leaves_the_smallest_numbers_alone(native):
    native.round(torch.ones(2, 4))
    assert torch.tensor(1e-40) * 1.0 > 0


def test_it_can_be_turned_off(monkeypatch):
    monkeypatch.setenv("HEEDFUL_NATIVE", "0")
    assert library("steps") is None


@pytest.mark.parametrize("width", [1, 7, 64, 100])
def test_rows_are_rounded_as_torch_rounds_them(native, width):
    x = torch.randn(5, width, generator=torch.Generator().manual_seed(width)) * 3
    x[2] = 0.0
    found = native.round(x)
    largest = x.abs().amax(1, keepdim=True).clamp(min=1e-12)
    torch.testing.assert_close(found.largest, largest)
    expected = (x / largest * 127 + 128.5).floor()
    # a number in the middle between two steps may go either way
    assert (found.bytes.float() - expected).abs().max() <= 1
    assert (found.bytes.float() == expected).float().mean() > 0.95
    back = (found.bytes.float() - 128) * largest / 127
    assert ((back - x).abs() <= largest / 127 * 0.501).all()


@pytest.mark.parametrize("vocabulary", [1, 9, 1000])
def test_log_probabilities_are_those_of_torch(native, vocabulary):
    generator = torch.Generator().manual_seed(vocabulary)
    product = torch.randn(6, vocabulary, generator=generator) * 20
    scale = torch.rand(6, 1, generator=generator) + 0.1
    bias = torch.randn(vocabulary, generator=generator)
    for some in (None, bias):
        rounded = Rounded(torch.empty(6, 1, dtype=torch.uint8), scale)
        expected = torch.log_softmax(product * scale + (0.0 if some is None else some), dim=1)
        found = native.log_softmax(product.clone(), rounded, some)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)
