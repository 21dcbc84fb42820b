import os
import resource
import subprocess
import sys

import pytest
import torch

from heedful.machine import memory


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "heedful" / "products.json"


def test_more_memory_than_there_is_cannot_be_promised():
    free = memory.free_memory()
    assert free is not None
    assert free > 0
    before = resource.getrlimit(resource.RLIMIT_AS)
    with memory.bounded_memory(), pytest.raises(RuntimeError, match="memory"):
        torch.empty(free + (4 << 30), dtype=torch.uint8)
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_a_bound_that_is_there_already_is_kept():
    before = resource.getrlimit(resource.RLIMIT_AS)
    tight = 64 << 30
    try:
        resource.setrlimit(resource.RLIMIT_AS, (tight, before[1]))
        with memory.bounded_memory():
            assert resource.getrlimit(resource.RLIMIT_AS)[0] <= tight
        assert resource.getrlimit(resource.RLIMIT_AS)[0] == tight
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_freed_memory_is_used_again_instead_of_asked_for():
    program = """
import resource, torch
from heedful.machine.memory import keep_freed_memory
def new_pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(4):
        torch.zeros(16 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
kept = keep_freed_memory()
for _ in range(6):
    new_pages()
print(kept, new_pages())
"""
    out = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    kept, pages = out.stdout.split()
    assert kept == "False" or int(pages) < 4096  # one of the four would be 16,384 small pages


def test_memory_of_a_process_is_its_own():
    size = 200 << 20
    held = bytearray(size)
    held[::4096] = b"x" * len(held[::4096])
    assert memory.peak_memory() >= size
    program = "from heedful.machine.memory import peak_memory; print(peak_memory())"
    out = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert 1 << 20 < int(out.stdout) < size


def test_freed_memory_is_given_back():
    program = """
from pathlib import Path
import torch
from heedful.machine.memory import give_memory_back, keep_freed_memory
def held():
    return int(Path("/proc/self/status").read_text("ascii").split("VmRSS:")[1].split()[0]) * 1024
kept = keep_freed_memory()
torch.ones(16 << 20)
before = held()
give_memory_back()
print(kept, before - held())
"""
    out = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    kept, returned = out.stdout.split()
    assert kept == "False" or int(returned) > 32 << 20  # most of the 64 MiB


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), ""),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), "CUDA out of "),
        (RuntimeError("could not create a memory object"), "could not create a memory object"),
        (RuntimeError("could not execute a primitive"), "could not execute a primitive"),
        (RuntimeError("std::bad_alloc"), "std::bad_alloc"),
        (RuntimeError("unable to mmap 512 bytes from file <a.bin>: Cannot allocate"), "unable to"),
        (RuntimeError("can't start new thread"), "can't start new thread"),
        (RuntimeError("pthread_create: Resource temporarily unavailable"), "pthread_create: R"),
        (ImportError("libmkl.so: failed to map segment from shared object"), "libmkl.so: failed"),
        (OSError(12, "Cannot allocate memory"), "[Errno 12] Cannot allocate memory"),
    ],
)
def test_an_error_for_lack_of_memory_is_recognized_by_its_words(error, words):
    assert memory.is_lack_of_memory(error)
    message = memory.lack_of_memory(error)
    assert message.startswith("the machine does not have enough memory for this")
    assert f"({words}" in message if words else "(" not in message
    wrapped = ImportError("a library cannot be loaded")
    wrapped.__cause__ = error
    assert memory.is_lack_of_memory(wrapped)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("mat1 and mat2 shapes cannot be multiplied"),
        RuntimeError("expected contiguous memory format"),
        RuntimeError("could not create a primitive descriptor for the inner product primitive"),
        BlockingIOError(11, "Resource temporarily unavailable"),
        FileNotFoundError(2, "No such file or directory", "memory.en"),
    ],
)
def test_another_error_is_not_taken_for_lack_of_memory(error):
    assert not memory.is_lack_of_memory(error)


def test_what_onednn_says_without_address_space_is_recognized():
    # With much room it computes, with none torch itself dies: between them it reports.
    program = """
import os, resource
from pathlib import Path
import torch
from heedful.machine.memory import is_lack_of_memory, lack_of_memory
x, weight = torch.randn(8, 64), torch.randn(64, 64)
size = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
for room in range(3 << 20, 0, -(1 << 15)):
    if (child := os.fork()) == 0:
        resource.setrlimit(resource.RLIMIT_AS, (size + room, size + room))
        try:
            torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")
        except RuntimeError as error:
            print(is_lack_of_memory(error), lack_of_memory(error), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    reports = done.stdout.splitlines()
    assert reports
    for report in reports:
        assert report.startswith("True the machine does not have enough memory for this (could not")
        assert report.endswith("raise the limit of the address space (ulimit -v).")
