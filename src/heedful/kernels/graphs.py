"""
Work that a GPU repeats with a single launch.

An eager training step of a base model starts about two thousand kernels, and each start takes
several microseconds of CPU time. A recorded graph starts all kernels at once, on the same memory.
On a CPU the work is called each time, so callers need no separate code for CPUs.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch

# Number of runs of the work before it is recorded, in which libraries allocate and compilers
# compile.
_WARM_UP = 3


@functools.cache
def _recording_stream(device: torch.device) -> Any:
    """Create a device's stream for all recordings; torch's own is only on the first device used."""
    return torch.cuda.Stream(device)


def _record(work: Callable[[], object], device: torch.device, pool: Any | None) -> Any:
    """Run the work several times, then record it."""
    apart = torch.cuda.Stream(device)
    apart.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(apart):
        for _ in range(_WARM_UP):
            work()
    torch.cuda.current_stream(device).wait_stream(apart)
    graph = torch.cuda.CUDAGraph()
    # another thread may prepare the next batch meanwhile
    recording = torch.cuda.graph(
        graph, pool=pool, stream=_recording_stream(device), capture_error_mode="thread_local"
    )
    with recording:
        work()
    return graph


class Graph:
    """
    Work over fixed tensors, recorded once and replayed.

    `work`: reads and writes the same tensors in each call; its shapes and branches never change. It
    runs several times before it is recorded, so the changes that these runs make must not matter.
    `pool`: memory to share with another graph (`Graph.pool`); None allocates new memory.

    Random numbers come from the device's default generator, in its state at the time of a replay.
    """

    def __init__(
        self, work: Callable[[], object], device: torch.device, pool: Any | None = None
    ) -> None:
        self._work = work
        self._graph: torch.cuda.CUDAGraph | None = None
        if device.type != "cuda":
            return
        with torch.cuda.device(device):  # may differ from the current device
            self._graph = _record(work, device, pool)

    @property
    def pool(self) -> Any | None:
        """The graph's memory, which graphs that never run at the same time may share."""
        return None if self._graph is None else self._graph.pool()

    def replay(self) -> None:
        """Run the work once."""
        if self._graph is None:
            self._work()
        else:
            self._graph.replay()
