"""Execution of commands, which measures their time and the memory of all their processes."""

import os
import resource
import shlex
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass
class FinishedCommand:
    """Time, memory and output of a command that has ended."""

    seconds: float
    processor_seconds: float
    peak: int
    """Peak bytes of all processes of the command together."""
    output: str
    """Standard output of the command."""


def run_watched(
    command: Sequence[object], environment: Mapping[str, str] | None = None
) -> FinishedCommand:
    """Run a command from start to end; `environment` has additional variables."""
    words, spent, started = [*map(str, command)], _children_seconds(), time.monotonic()
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, encoding="utf-8", env=os.environ | (environment or {})
    ) as process:
        watch = MemoryWatch(process.pid)
        watch.start()
        output, _ = process.communicate()
        seconds = time.monotonic() - started
        watch.join()
    if process.returncode:
        raise SystemExit(f"{shlex.join(words)} ended with {process.returncode}")
    return FinishedCommand(seconds, _children_seconds() - spent, watch.peak, output)


class MemoryWatch(threading.Thread):
    """
    A thread that adds up the memory of a process and its children, twenty times a second.

    Shared memory is counted once for each process, so the sum is an upper bound.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid = pid
        self.peak = 0

    def run(self) -> None:
        """Watch until the process has ended."""
        while sizes := [size for pid in _family(self.pid) if (size := _resident(pid))]:
            self.peak = max(self.peak, sum(sizes))
            time.sleep(0.05)


def status_bytes(name: str, process: int | str = "self") -> int:
    """Read the memory of a process in bytes: `VmRSS` (current) or `VmHWM` (peak)."""
    lines = Path(f"/proc/{process}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


def _family(pid: int) -> list[int]:
    """List a process and its children."""
    family = [pid]
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            family += map(int, (task / "children").read_text("ascii").split())
    except OSError:
        pass  # the process has just ended
    return family


def _resident(pid: int) -> int:
    """Read the resident memory of a process in bytes; 0 if the process has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * 4096
    except OSError:
        return 0


def _children_seconds() -> float:
    """Return the CPU seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
