"""
Forked processes, in which only the forking thread survives.

Torch and the C functions compute in threads of GNU's OpenMP, which does not notice that a fork
lacks these threads. The next parallel operation of a fork would wait for them forever. A single
thread needs no pool. So a fork of a process that has computed in several threads computes in one
thread. A process that has only imported heedful has no pool, so its forks may start their own pool.
"""

import os
import sys
import threading
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Pool:
    """The state of OpenMP's pool of threads."""

    begun = False
    """Whether this process may have started threads."""
    lost = False
    """Whether the parent of this fork may have started threads."""


def allowed_threads(threads: int) -> int:
    """Return the number of threads that this process may use, at most `threads`."""
    if _Pool.lost and threads > 1:
        warnings.warn(
            "This process is a fork without the threads of its parent, so it computes in one "
            f"thread instead of {threads:,}. For more threads, start processes before a model is "
            "loaded, or with the method “spawn”.",
            RuntimeWarning,
            stacklevel=4,
        )
        return 1
    _Pool.begun |= threads > 1
    return threads


class Turns:
    """
    A reentrant lock for threads that share an object.

    A fork gets a free lock, because the thread that held it does not exist in the fork.
    """

    def __init__(self) -> None:
        self._process, self._lock = os.getpid(), threading.RLock()

    def __reduce__(self) -> tuple[type["Turns"], tuple[()]]:
        return Turns, ()

    def __enter__(self) -> None:
        if self._process != os.getpid():
            self._process, self._lock = os.getpid(), threading.RLock()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def in_turn(method: _Function) -> _Function:
    """Let only one thread at a time run a method, with the lock `turns` of the object."""

    @wraps(method)
    def call(self: Any, *arguments: Any, **keywords: Any) -> Any:
        with self.turns:
            return method(self, *arguments, **keywords)

    return call  # type: ignore[return-value]


def _after_fork() -> None:
    """Compute in one thread from now on, if the fork may have lost a pool."""
    if _Pool.begun:
        _Pool.lost = True
        sys.modules["torch"].set_num_threads(1)


os.register_at_fork(after_in_child=_after_fork)
