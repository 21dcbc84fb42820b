"""Device memory during training: its use, and the message when it is full."""

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
    """Return the peak memory in bytes, of the GPU if there is one, else of this process."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    return peak_memory()


def bound_of(device: torch.device) -> AbstractContextManager[None]:
    """
    Limit the memory of this process, so that allocations beyond it fail.

    A GPU limits its own memory and needs much address space.
    """
    return bounded_memory() if device.type == "cpu" else nullcontext()


def is_lack_of_memory(error: BaseException) -> bool:
    """Recognise an out-of-memory error; on a CPU torch has no exception class for it."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return any(words in str(error) for words in _LACK_OF_MEMORY)
