"""Device memory during training: its peak, its limit, and the check that the weights fit."""

from contextlib import AbstractContextManager, nullcontext

import torch

from heedful.errors import DeviceError
from heedful.machine.memory import bounded_memory, free_memory, peak_memory


def peak_of(device: torch.device) -> int:
    """Return the peak memory in bytes: of the GPU, or of this process if the device is a CPU."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    return peak_memory()


def bound_of(device: torch.device) -> AbstractContextManager[None]:
    """Return a context in which CPU allocations beyond the free memory fail."""
    # A GPU limits its own memory and needs a large address space.
    return bounded_memory() if device.type == "cpu" else nullcontext()


def require_room(parameters: int, device: torch.device) -> None:
    """Refuse a model whose weights, or on a CPU weights and gradients, exceed the free memory."""
    # On a CPU, gradients need as much memory again. For a GPU, weights are first initialized on the
    # CPU.
    free, needed = free_memory(), parameters * (8 if device.type == "cpu" else 4)
    if free is not None and needed > free:
        gradients = " and their gradients" if device.type == "cpu" else ""
        raise DeviceError(
            f"the model must fit into the memory of this machine, but its {parameters:,} weights"
            f"{gradients} take {needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free; make "
            "the model smaller."
        )
