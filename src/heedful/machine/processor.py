"""The processor, without torch: how much of it this process may use, and what it can do."""

import functools
import os
import threading
from pathlib import Path

from heedful.errors import SettingError

# More than the cores is of no use, but does no harm up to here.
_MANY_THREADS = 64


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


def omp_threads() -> int:
    """Read how many threads ``OMP_NUM_THREADS`` asks for; 0 if it says nothing."""
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(asked) if asked.isascii() and asked.isdigit() else 0


def check_threads(threads: int, name: str = "threads") -> None:
    """Refuse a number of threads that no machine like this has a use for: it would crash torch."""
    most = max(_MANY_THREADS, 8 * usable_cores())
    if not 0 <= threads <= most:
        raise SettingError(
            f"{name} must be from 0, which takes one for each core ({usable_cores()} here), to "
            f"{most}, but is {threads:,}."
        )
    if threads > usable_cores() and not can_start_threads(threads):
        raise SettingError(
            f"{name} must be no more than this process may start, but is {threads:,}; take fewer."
        )


def can_start_threads(count: int) -> bool:
    """Tell whether the system lets this process have that many more threads at once."""
    end = threading.Event()
    started: list[threading.Thread] = []
    try:
        for _ in range(count):
            thread = threading.Thread(target=end.wait)
            thread.start()
            started.append(thread)
    except RuntimeError:
        return False
    finally:
        end.set()
        for thread in started:
            thread.join()
    return True


def processor_facts(*fields: str) -> list[str]:
    """
    Look up what the system says of the processor.

    Parameters
    ----------
    *fields : str
        Such as “model name” and “flags”.

    Returns
    -------
    list of str
        The lines that begin so, one after the other for each core; none but on Linux.

    Notes
    -----
    ``/proc/cpuinfo``.
    """
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.startswith(fields)]


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
    for flags in processor_facts("flags"):
        return 127 if {"avx512_vnni", "avx_vnni"} & set(flags.split()) else 63
    return 63
