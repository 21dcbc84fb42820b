"""
Fusion of several GPU operations into one kernel.

Such a kernel is an operation defined in Python, which takes longer to start than the operations
that it replaces. In a recorded graph this does not matter, but in eager code it does. So these
kernels are used only within `fused`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

# How many uses of `fused` are open; a list, which torch's compiler reads.
_open = [0]
_lock = Lock()


def is_fused() -> bool:
    """Decide whether one kernel replaces several here."""
    return _open[0] > 0


@contextmanager
def fuse_kernels() -> Iterator[None]:
    """Replace several kernels by one on a GPU; other threads do so, too, and only lose time."""
    with _lock:
        _open[0] += 1
    try:
        yield
    finally:
        with _lock:
            _open[0] -= 1
