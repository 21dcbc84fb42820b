"""
Memory: free, used and returned to the system, and the error when there is too little.

Torch is not needed: text is prepared by processes that never load it.
"""

import ctypes
import errno
import resource
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heedful.errors import HeedfulError

# With a smaller address space, a signal kills the process while torch is loaded or starts threads.
_LEAST_ADDRESS_SPACE = 900_000 << 10
# Address space that is reserved but not used: thread stacks and the allocator's arenas.
_RESERVED_BYTES = 512 << 20
# Parts of the error messages of the system, its loader, the C++ library, torch, oneDNN and Python
# when a process can get no more memory, address space or threads. The errors have no common class.
# "could not create a primitive descriptor" is not among them: oneDNN says it of unsuitable types.
_LACK_OF_MEMORY = (
    "bad_alloc",
    "can't allocate",
    "can't start new thread",
    "cannot allocate",
    "could not create a memory object",
    "could not create a primitive",
    "could not create a stream",
    "could not execute a primitive",
    "failed to map segment",
    "not enough memory",
    "out of memory",
    "pthread_create",
    "thread creation failed",
    "unable to mmap",
)
# Codes of `mallopt`'s parameters in glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


def free_memory() -> int | None:
    """
    Return the bytes of memory that this process can still use; None if unknown.

    The result is the smaller of the machine's and the control group's free memory. Containers limit
    memory through control groups, which `/proc/meminfo` does not show.
    """
    free = []
    info = Path("/proc/meminfo")
    if info.exists():
        for line in info.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                free.append(int(line.split()[1]) * 1024)
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text(encoding="ascii").strip()
        current = (group / "memory.current").read_text(encoding="ascii").strip()
        statistics = (group / "memory.stat").read_text(encoding="ascii").splitlines()
        # the system's file cache counts as used memory, but is freed when needed
        files = ("active_file", "inactive_file")
        cached = sum(int(line.split()[1]) for line in statistics if line.split()[0] in files)
        free.append(int(limit) - int(current) + cached)
    except (OSError, ValueError):
        pass  # no control group, or one without a limit
    return max(0, min(free)) if free else None


def peak_memory() -> int:
    """Return the peak memory of this process in bytes."""
    # Linux passes `ru_maxrss` on from the parent to its children, so a child of a large process
    # would seem large; the high-water mark of resident memory starts anew in each process.
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@contextmanager
def bounded_memory() -> Iterator[None]:
    """
    Limit the address space, so that allocations beyond the free memory raise errors.

    Linux grants more memory than the machine has, and kills a process that uses too much. A killed
    process cannot say which setting to change. So while the largest micro-batch is tried, the
    address space may grow only by the free memory plus half a gibibyte. On other systems, or if the
    free memory is unknown, there is no limit.
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
    """Keep freed memory for the next step of training or search; return whether this works."""
    # By default glibc requests memory for every large tensor and returns it at once, and the system
    # clears each page again. This takes a fifth of a training step on a CPU, and a twentieth of a
    # search. With these settings, tensors of up to a gibibyte reuse freed memory. The process keeps
    # its peak until it ends.
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, 1 << 30)) and bool(mallopt(_TRIM_THRESHOLD, -1))


def give_memory_back() -> None:
    """Return freed memory to the system."""
    # The C library keeps freed memory for later use: about 900 MB after subwords were trained on a
    # million pairs, when the worker processes need memory.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def check_address_space() -> None:
    """Refuse an address space too small to load torch, unless torch is already loaded."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    is_limited = limit != resource.RLIM_INFINITY and limit < _LEAST_ADDRESS_SPACE
    if is_limited and "torch" not in sys.modules:
        raise HeedfulError(
            "the limit of the address space (ulimit -v) must be at least "
            f"{_LEAST_ADDRESS_SPACE >> 10} KiB, but is {limit >> 10} KiB; raise it."
        )


def is_lack_of_memory(error: BaseException | None) -> bool:
    """Recognize an error that is, or is caused by, a lack of memory."""
    return _lack(error) is not None


def lack_of_memory(error: BaseException) -> str:
    """Write the message about an error that `is_lack_of_memory` recognizes."""
    words = textwrap.shorten(_lack(error) or "", 80, placeholder=" ...")
    advice = "use a smaller model, smaller batches or fewer threads"
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        advice += ", or raise the limit of the address space (ulimit -v)"
    return (
        f"the machine does not have enough memory for this{f' ({words})' if words else ''}; "
        f"{advice}."
    )


def _lack(error: BaseException | None) -> str | None:
    """Return an error's sentence about a lack of memory (may be empty); None for other errors."""
    while error is not None:
        for sentence in str(error).split(". "):
            is_lack = any(words in sentence.lower() for words in _LACK_OF_MEMORY)
            if is_lack and "primitive descriptor" not in sentence:
                return sentence.rstrip(".")
        if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
            return ""
        error = error.__cause__ or error.__context__
    return None
