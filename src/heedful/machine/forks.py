"""
Forked processes, which have only the thread that forked.

GNU's OpenMP, by which torch and the C functions compute in threads, does not know that the threads
of its pool are gone: the next parallel operation of a fork would wait for them for ever. A single
thread needs no pool. So a fork of a process that has computed in several threads computes in one.
A process that has only imported heedful has no pool, and its forks may have their own.
"""

import os
import sys
import warnings


class _Pool:
    """The threads of OpenMP's pool."""

    begun = False
    """Whether this process may have started them."""
    lost = False
    """Whether an earlier process did, of which this one is a fork."""


def allowed_threads(threads: int) -> int:
    """Return the number of threads that this process can compute in, at most the given one."""
    if _Pool.lost and threads > 1:
        warnings.warn(
            "This process is a fork of one that computes in several threads, and a fork does not "
            f"have these, so it computes in one instead of {threads:,}. Start processes before a "
            "model is loaded, or by the method “spawn”, to have more.",
            RuntimeWarning,
            stacklevel=4,
        )
        return 1
    _Pool.begun |= threads > 1
    return threads


def _after_fork() -> None:
    """Compute in one thread from now on, if the pool has been lost."""
    if _Pool.begun:
        _Pool.lost = True
        sys.modules["torch"].set_num_threads(1)


os.register_at_fork(after_in_child=_after_fork)
