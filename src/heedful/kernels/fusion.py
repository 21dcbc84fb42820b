"""
Fusion of several GPU operations into one kernel.

Such a kernel is an operation defined in Python, which takes longer to start than the operations
that it replaces. This cost matters in eager code, but not in a recorded graph. So these kernels are
used only within `fuse_kernels`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

# Number of active `fuse_kernels` contexts, in a list because torch's compiler can read lists.
_open = [0]
_lock = Lock()


def is_fused() -> bool:
    """Return whether a fused kernel currently replaces several kernels."""
    return _open[0] > 0


@contextmanager
def fuse_kernels() -> Iterator[None]:
    """Replace several kernels with one on a GPU; for other threads, this changes only the speed."""
    with _lock:
        _open[0] += 1
    try:
        yield
    finally:
        with _lock:
            _open[0] -= 1
