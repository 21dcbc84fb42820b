"""Devices, and the number of CPU threads."""

import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from heedful.errors import DeviceError
from heedful.machine.forks import allowed_threads
from heedful.machine.processor import (
    check_threads,
    omp_threads,
    processor_facts,
    usable_cores,
)


def resolve_device(name: str) -> torch.device:
    """Return the device that a setting names; raise `DeviceError` if it is not available."""
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", name):
        raise DeviceError(f"a device must be auto, cpu, cuda or cuda:N, but is {name!r}.")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if name == "cpu" or (name == "auto" and count == 0):
        return torch.device("cpu")
    index = local if name in ("auto", "cuda") else int(name.removeprefix("cuda:"))
    if index >= count:
        there = f"only {count} CUDA device{'s' if count > 1 else ''}" if count else "no CUDA device"
        raise DeviceError(
            f"the device {name} must exist, but torch finds {there} on this machine; choose "
            "--device cpu or auto, or see `heedful info`."
        )
    # cuDNN prepares its attention for each new shape, which takes longer than it saves, because
    # batches in training and steps in a search rarely repeat a shape
    torch.backends.cuda.enable_cudnn_sdp(False)
    return torch.device("cuda", index)


@contextmanager
def same_bytes(device: torch.device, is_required: bool) -> Iterator[None]:
    """Use only deterministic GPU functions inside the context if `is_required`."""
    if device.type != "cuda":
        yield
        return
    # cuBLAS reads this variable at its first use
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    was_required = torch.are_deterministic_algorithms_enabled()
    memory: Any = torch.utils.deterministic
    was_filled = memory.fill_uninitialized_memory
    torch.use_deterministic_algorithms(is_required)
    memory.fill_uninitialized_memory = False  # no result depends on uninitialized memory
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(was_required)
        memory.fill_uninitialized_memory = was_filled


def resolve_threads(threads: int) -> int:
    """
    Set and return torch's number of threads.

    0 means ``OMP_NUM_THREADS`` if there is one rank and the variable is set. Otherwise it means an
    equal share of the cores for each of this machine's ranks. A fork of a process that has computed
    in several threads gets one thread.
    """
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if threads == 0:
        requested = omp_threads() if ranks == 1 else 0
        threads = requested or max(1, usable_cores() // ranks)
    check_threads(threads)
    threads = allowed_threads(threads)
    torch.set_num_threads(threads)
    return threads


def has_int8(device: torch.device) -> bool:
    """Return whether oneDNN's 8-bit matrix multiplications are fast on a device."""
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    return device.type == "cpu" and x86 and torch.backends.mkldnn.is_available()


def processor_of(device: torch.device) -> str:
    """Name the GPU, or the CPU with its instruction set."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    name = platform.processor() or platform.machine()
    for model in processor_facts("model name")[:1]:
        name = model.partition(":")[2].strip()
    return f"{name} ({torch.backends.cpu.get_cpu_capability()})"


def instruction_set(device: torch.device) -> str:
    """Name what determines torch's kernels: the GPU, or the CPU's vector instructions."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return torch.backends.cpu.get_cpu_capability()


def describe_machine() -> dict[str, object]:
    """Describe the processor, memory, GPUs, system, and versions of Python and torch."""
    gpus = []
    if torch.cuda.is_available():
        gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {
        "processor": processor_of(torch.device("cpu")),
        "cores": usable_cores(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpus": gpus,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
