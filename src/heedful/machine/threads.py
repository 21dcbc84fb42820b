"""Independent calls in threads that share the processor's cores."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def map_in_threads(
    function: Callable[[_Item], _Result], items: Iterable[_Item], workers: int
) -> Iterator[_Result]:
    """
    Call a function with each item, some at a time; the results come in the order of the items.

    The threads of torch's operations are divided among the workers. When a call fails, or the
    caller is interrupted, calls that have not begun are left out.
    """
    threads = torch.get_num_threads()
    pool = ThreadPoolExecutor(
        workers, initializer=torch.set_num_threads, initargs=(threads // workers,)
    )
    try:
        yield from pool.map(function, items)
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)  # what threads begun later take is the last number set
