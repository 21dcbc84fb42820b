"""The memory of the device that trains: how much was used, and what it says when it is full."""

from contextlib import AbstractContextManager, nullcontext

import torch

from heedful.machine.memory import bounded_memory, peak_memory

# What torch's allocator, its oneDNN and the C++ library say when a processor's memory is full.
_LACK_OF_MEMORY = (
    "not enough memory",
    "can't allocate memory",
    "could not create",
    "bad_alloc",
    "out of memory",
)


def peak_of(device: torch.device) -> int:
    """
    Ask how much memory was used at most.

    Parameters
    ----------
    device : torch.device
        What trains.

    Returns
    -------
    int
        Bytes.

    Notes
    -----
    The GPU's where there is one, else this process's.
    """
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    return peak_memory()


def bound_of(device: torch.device) -> AbstractContextManager[None]:
    """
    Let what does not fit fail.

    Parameters
    ----------
    device : torch.device
        What trains.

    Returns
    -------
    context manager
        Within it the processor's memory is bounded.

    Notes
    -----
    A GPU bounds its own memory and needs much address space.
    """
    return bounded_memory() if device.type == "cpu" else nullcontext()


def is_lack_of_memory(error: BaseException) -> bool:
    """
    Tell a full memory from other failures.

    Parameters
    ----------
    error : BaseException
        What was raised.

    Returns
    -------
    bool
        Whether there was not enough.

    Notes
    -----
    Torch has no class for it on a processor.
    """
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return any(words in str(error) for words in _LACK_OF_MEMORY)
