"""Devices: which are there, and how many threads feed them."""

import os
import platform
import re

import torch

from heedful.errors import DeviceError
from heedful.machine.processor import (
    check_threads,
    omp_threads,
    processor_facts,
    usable_cores,
)


def resolve_device(name: str) -> torch.device:
    """
    Turn a device setting into a device that is there.

    Parameters
    ----------
    name : str
        ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.

    Returns
    -------
    torch.device
        `auto` takes the GPU of this rank if there is one.

    Notes
    -----
    Raises `DeviceError` if it is not there.
    """
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", name):
        raise DeviceError(f"a device must be auto, cpu, cuda or cuda:N, but is {name!r}.")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if name == "cpu" or (name == "auto" and count == 0):
        return torch.device("cpu")
    index = local if name in ("auto", "cuda") else int(name.removeprefix("cuda:"))
    if index >= count:
        there = f"only {count} of them" if count else "no CUDA device"
        raise DeviceError(
            f"the device {name} must be there, but torch sees {there} on this machine; choose "
            "--device cpu or auto, or see `heedful info`."
        )
    return torch.device("cuda", index)


def resolve_threads(threads: int) -> int:
    """
    Turn a thread setting into a number and set it.

    Parameters
    ----------
    threads : int
        0 for all processors that this process may use.

    Returns
    -------
    int
        What torch uses from now on.

    Notes
    -----
    Shared among the ranks that `torchrun` started on this machine.
    """
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if threads == 0:
        asked = omp_threads() if ranks == 1 else 0
        threads = asked or max(1, usable_cores() // ranks)
    check_threads(threads)
    torch.set_num_threads(threads)
    return threads


def has_int8(device: torch.device) -> bool:
    """
    Tell whether products of 8-bit integers can be had.

    Parameters
    ----------
    device : torch.device
        Where products would run.

    Returns
    -------
    bool
        True on x86 processors.

    Notes
    -----
    They are oneDNN's, which are fast there only.
    """
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    return device.type == "cpu" and x86 and torch.backends.mkldnn.is_available()


def processor_of(device: torch.device) -> str:
    """
    Name the processor or the GPU, and what its instruction set offers.

    Parameters
    ----------
    device : torch.device
        Where products run.

    Returns
    -------
    str
        Equal on machines that are equally fast.

    Notes
    -----
    As `heedful info` shows it.
    """
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    name = platform.processor() or platform.machine()
    for model in processor_facts("model name")[:1]:
        name = model.partition(":")[2].strip()
    return f"{name} ({torch.backends.cpu.get_cpu_capability()})"


def instruction_set(device: torch.device) -> str:
    """
    Name what the kernels of a device are chosen by.

    Parameters
    ----------
    device : torch.device
        Where products run.

    Returns
    -------
    str
        Equal on two machines that give equal bits with the same torch.

    Notes
    -----
    The processor's vector instructions, or the GPU's model.
    """
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return torch.backends.cpu.get_cpu_capability()


def describe_machine() -> dict[str, object]:
    """
    Describe processor, memory and devices.

    Returns
    -------
    dict
        For `heedful info`, `config.json` and benchmark results.

    Notes
    -----
    Measures nothing.
    """
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
