"""
What this machine does well: devices, threads, and which precision is fast.

The name of a device does not tell. On some processors bf16 products run five times as fast as
fp32, on others they are emulated and far slower. So a short probe measures both, once for each
processor and torch version, and the result is kept in the user's cache folder. A faster way is
taken only when it wins clearly.
"""

import ctypes
import functools
import json
import os
import platform
import re
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from heedful.errors import DeviceError

CLEARLY_FASTER = 1.3
_ROWS, _IN, _OUT = 2048, 512, 2048
# Address space that is set aside but not used: thread stacks and the allocator's arenas.
_RESERVED_BYTES = 512 << 20
# Numbers of `mallopt`'s parameters in glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


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
        asked = os.environ.get("OMP_NUM_THREADS", "")
        alone = ranks == 1 and asked.isdigit() and int(asked) > 0
        threads = int(asked) if alone else max(1, usable_cores() // ranks)
    torch.set_num_threads(threads)
    return threads


def usable_cores() -> int:
    """
    Count the processors that this process may use.

    Returns
    -------
    int
        At least 1.

    Notes
    -----
    Respects CPU affinity, which containers and job schedulers set.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def resolve_precision(precision: str, device: torch.device) -> str:
    """
    Turn a precision setting into 'fp32' or 'bf16'.

    Parameters
    ----------
    precision : {'auto', 'fp32', 'bf16'}
        The setting.
    device : torch.device
        Where products will run.

    Returns
    -------
    str
        `auto` gives bf16 where it is clearly faster.

    Notes
    -----
    The probe takes some 50 ms the first time and nothing after that.
    """
    if precision != "auto":
        return precision
    rates = product_rates(device)
    return "bf16" if rates["bf16"] >= CLEARLY_FASTER * rates["fp32"] else "fp32"


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


@functools.cache
def int8_levels() -> int:
    """
    Tell how finely inputs may be rounded for products of 8-bit integers.

    Returns
    -------
    int
        127, or 63 on processors that add two products in 16 bits, which larger ones overflow.

    Notes
    -----
    The instructions that add in 32 bits are called VNNI.
    """
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("flags"):
                return 127 if {"avx512_vnni", "avx_vnni"} & set(line.split()) else 63
    return 63


def product_rates(device: torch.device) -> dict[str, float]:
    """
    Measure matrix products in both precisions, or remember an earlier measurement.

    Parameters
    ----------
    device : torch.device
        Where to measure.

    Returns
    -------
    dict of str to float
        GFLOP/s for 'fp32' and 'bf16'.

    Notes
    -----
    Cached by processor, threads and torch version; a cache that cannot be written is no error.
    """
    key = _cache_key(_processor(device), torch.get_num_threads(), torch.__version__)
    path = _cache_file()
    cache = _read_cache(path)
    if key not in cache:
        cache[key] = measured_rates(device)
        _write_cache(path, cache)
    return cache[key]


def measured_rates(device: torch.device, seconds: float = 0.0) -> dict[str, float]:
    """
    Measure matrix products in both precisions now.

    Parameters
    ----------
    device : torch.device
        Where to measure.
    seconds : float, default 0.0
        How long to go on in either, beyond the six products that are always tried; the best counts.

    Returns
    -------
    dict of str to float
        GFLOP/s for 'fp32' and 'bf16'.

    Notes
    -----
    Nothing is remembered: a benchmark compares with what the machine gives it today.
    """
    return {
        "fp32": _rate(torch.float32, device, seconds),
        "bf16": _rate(torch.bfloat16, device, seconds),
    }


def remembered_rates(processor: str, threads: int, version: str) -> dict[str, float] | None:
    """
    Look up an earlier measurement of matrix products.

    Parameters
    ----------
    processor : str
        As `describe_machine` names it, or the name of a GPU.
    threads : int
        Of the processor.
    version : str
        Of torch.

    Returns
    -------
    dict of str to float, or None
        GFLOP/s for 'fp32' and 'bf16'; None if this was never measured here.

    Notes
    -----
    Measures nothing. A run from another machine finds only what that machine has in common with
    this one.
    """
    return _read_cache(_cache_file()).get(_cache_key(processor, threads, version))


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
        "processor": _processor(torch.device("cpu")),
        "cores": usable_cores(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpus": gpus,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


@contextmanager
def bounded_memory() -> Iterator[None]:
    """
    Let allocations beyond the free memory fail instead of ending the process.

    Yields
    ------
    None
        Nothing.

    Notes
    -----
    Linux promises more memory than there is and kills whoever uses it; a killed process cannot say
    which setting to change. So while the largest batch is tried, the address space may grow by
    what is free and half a gibibyte, no more. Elsewhere, and where nothing is known, no bound.
    """
    free = free_memory()
    used = Path("/proc/self/statm")
    if free is None or not used.exists():
        yield
        return
    size = int(used.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    bound = size + free + _RESERVED_BYTES
    lowest = min([limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY] or [bound])
    resource.setrlimit(resource.RLIMIT_AS, (min(bound, lowest), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def keep_freed_memory() -> bool:
    """
    Let the next step of training or search use the memory of the last one.

    Returns
    -------
    bool
        Whether the C library knows how.

    Notes
    -----
    glibc asks the system anew for every large tensor and gives it back at once, and the system
    clears each page again: a fifth of a training step on a processor, a twentieth of a search. Now
    up to a gibibyte a tensor comes from what was freed before. The process keeps its peak until it
    ends.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, 1 << 30)) and bool(mallopt(_TRIM_THRESHOLD, -1))


def free_memory() -> int | None:
    """
    Ask how much memory this process could still use.

    Returns
    -------
    int or None
        Bytes, the smaller of what the machine and its control group leave; None if unknown.

    Notes
    -----
    Containers limit memory through control groups, which `/proc/meminfo` does not show.
    """
    found = []
    info = Path("/proc/meminfo")
    if info.exists():
        for line in info.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text(encoding="ascii").strip()
        current = (group / "memory.current").read_text(encoding="ascii").strip()
        statistics = (group / "memory.stat").read_text(encoding="ascii").splitlines()
        # what the system remembers of files counts as used, but gives way
        files = ("active_file", "inactive_file")
        cached = sum(int(line.split()[1]) for line in statistics if line.split()[0] in files)
        found.append(int(limit) - int(current) + cached)
    except (OSError, ValueError):
        pass  # no control group, or one without a limit
    return max(0, min(found)) if found else None


def _rate(dtype: torch.dtype, device: torch.device, seconds: float) -> float:
    """Time one product of a typical shape: the best of several runs, in GFLOP/s."""
    left = torch.ones(_ROWS, _IN, dtype=dtype, device=device)
    right = torch.ones(_OUT, _IN, dtype=dtype, device=device)
    best, until, tried = float("inf"), time.perf_counter() + seconds, 0
    while tried < 6 or time.perf_counter() < until:
        tried += 1
        started = time.perf_counter()
        torch.nn.functional.linear(left, right)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - started)
    return 2e-9 * _ROWS * _IN * _OUT / best


def _processor(device: torch.device) -> str:
    """Name the processor or the GPU, and what its instruction set offers."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    return f"{name} ({torch.backends.cpu.get_cpu_capability()})"


def _cache_key(processor: str, threads: int, version: str) -> str:
    """Name what a measurement holds for."""
    return " | ".join((processor, f"{threads} threads", version))


def _cache_file() -> Path:
    """Return where measurements are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "heedful" / "machine.json"


def _read_cache(path: Path) -> dict[str, dict[str, float]]:
    """Read earlier measurements; anything odd counts as none."""
    try:
        cache = json.loads(path.read_text(encoding="utf-8"))
        good = {k: v for k, v in cache.items() if min(float(v["fp32"]), float(v["bf16"])) > 0}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
    return good


def _write_cache(path: Path, cache: dict[str, dict[str, float]]) -> None:
    """Keep measurements if the folder can be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(f".{os.getpid()}.partial")
        beside.write_text(json.dumps(cache, indent=2), encoding="utf-8")
        beside.replace(path)
    except OSError:
        return
