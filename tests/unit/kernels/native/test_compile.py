import os
import stat
import subprocess
import sys

import pytest
import torch

from heedful.kernels.native import compile
from heedful.kernels.native.compile import NoLibrary, native_library
from heedful.kernels.native.product import NativeInt8Linear, load_products
from heedful.kernels.native.variants import VARIANTS


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "heedful"


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def small_compiler(folder):
    """A compiler that ignores its input: a library of one function compiles at once."""
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
from heedful.kernels.native import compile
from heedful.kernels.native.compile import NoLibrary, native_library
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
        ('cc -shared {one} -o "$2" && truncate -s 5000 "$2"', "is incomplete"),
        ('cc -shared {one} -o "$2"', "has no can_multiply_bfloat16, inputs_at_once"),
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
    NativeInt8Linear(torch.ones(2, 4), None)(torch.ones(2, 4))
    assert torch.tensor(1e-40) * 1.0 > 0


@pytest.mark.parametrize(
    ("flags", "chosen"),
    [
        ({"avx512_fp16"}, "avx512-bf16"),
        ({"avx512_vnni", "avx512f"}, "avx512-vnni"),
        ({"avx_vnni"}, "avx-vnni"),
        (set(), "avx2"),
        (None, None),
    ],
)
def test_the_best_library_of_the_wheel_is_chosen(tmp_path, monkeypatch, flags, chosen):
    for name, (needed, _) in VARIANTS.items():
        (tmp_path / f"steps-{name}.so").touch()
        if name == chosen:
            flags = needed | flags
    monkeypatch.setattr(compile, "processor_flags", lambda: flags or {"sse2"})
    found = compile.built_library(tmp_path / "steps.c")
    assert found == (tmp_path / f"steps-{chosen}.so" if chosen else None)


def test_what_the_wheel_brought_is_loaded_without_a_compiler(
    cache, tmp_path, compiled, monkeypatch, caplog
):
    del compiled
    made = tmp_path / "steps-avx2.so"
    subprocess.run([small_compiler(tmp_path), "-o", str(made)], check=True)
    monkeypatch.setattr(compile, "built_library", lambda _: made)
    monkeypatch.setenv("CC", "no-such-compiler")
    assert native_library("steps", lambda _: ["lanes"]).lanes() == 1
    assert not cache.exists()
    monkeypatch.setenv("CC", small_compiler(tmp_path))
    assert not caplog.messages
    spoiled = tmp_path / "steps-avx-vnni.so"  # another file: the first one is in use
    spoiled.write_bytes(b"no library")
    monkeypatch.setattr(compile, "built_library", lambda _: spoiled)
    assert native_library("steps", lambda _: ["lanes"]).lanes() == 1
    assert "steps-avx-vnni.so cannot be loaded" in caplog.messages[0]
    assert "compiling C functions" in caplog.messages[1]
    monkeypatch.setenv("HEEDFUL_NATIVE", "compile")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(NoLibrary, match="no C compiler"):
        native_library("steps")


def test_a_processor_without_the_instructions_is_told_so_and_compiles_once(
    cache, tmp_path, compiled, monkeypatch
):
    del compiled
    plain = script(tmp_path / "plain", 'exec cc "$@" -march=x86-64')
    monkeypatch.setenv("CC", plain)
    monkeypatch.setenv("HEEDFUL_NATIVE", "compile")
    for _ in range(2):
        with pytest.raises(NoLibrary, match="an x86 processor with AVX2"):
            load_products()
        assert len(list(cache.iterdir())) == 1
