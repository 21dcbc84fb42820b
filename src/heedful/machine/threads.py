"""Independent calls in threads that share the processor's cores."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_AHEAD = 2  # submitted calls per worker before the first result is taken


def map_in_threads(
    function: Callable[[_Item], _Result], items: Iterable[_Item], workers: int
) -> Iterator[_Result]:
    """
    Call a function with each item in several workers; yield the results in the order of the items.

    The threads of torch's operations are divided among the workers. After a failed call or an
    interruption of the caller, only calls that have started are completed.
    """
    threads = torch.get_num_threads()
    begun = threading.Barrier(workers + 1)

    def begin() -> None:
        """Set this worker's number of threads, and wait for the other workers."""
        torch.get_num_threads()  # a thread's first call copies the process's number of threads
        torch.set_num_threads(max(1, threads // workers))
        begun.wait()

    pool = ThreadPoolExecutor(workers)
    waiting: deque[Future[_Result]] = deque()
    try:
        for _ in range(workers):
            pool.submit(begin)
        begun.wait()
        # this also sets the number of threads for threads that use torch for the first time later
        torch.set_num_threads(threads)
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) == _AHEAD * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        begun.abort()  # releases the workers if one of them could not start
        pool.shutdown(cancel_futures=True)
