"""
A pool of worker processes that encode shards.

Workers are separate programs, not forks, so they inherit no memory, threads or modules. A script
that uses this pool needs no guard `if __name__ == "__main__"`. The protocol is described in
`heedful.data.encoded.worker`.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from heedful import errors
from heedful.data.cleaning.filter import PairFilter

# The child process searches for modules where this process does.
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from heedful.data.encoded.worker import main; main()"
)
_KEPT = "Run the same command again: it keeps the encoded text and continues."


class Workers:
    """
    A pool of processes that encode shards.

    A context manager: when its block ends normally, all shards are written; after an exception the
    processes are killed. Each process has a thread that waits for it. At most two shards per
    process are kept in memory.
    """

    def __init__(self, count: int, tokenizer: Path, pair_filter: PairFilter) -> None:
        self._setup = {"tokenizer": str(tokenizer.resolve()), "filter": asdict(pair_filter)}
        # Ctrl-C reaches every process of a terminal; the workers leave it to their parent.
        block = (signal.SIG_BLOCK, {signal.SIGINT})
        self._threads = ThreadPoolExecutor(count, "encode", signal.pthread_sigmask, block)
        self._free = threading.Semaphore(2 * count)
        self._own = threading.local()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._starting = threading.Lock()
        self._ended = False
        self._failure: BaseException | None = None

    def submit(self, path: Path, packed: bytes) -> None:
        """
        Submit a shard.

        Blocks while two shards per process are unfinished, so that reading does not run far ahead
        of encoding.

        Raises `HeedfulError` or `OSError`, the error of an earlier shard.
        """
        self._free.acquire()
        self._raise_failure()
        self._threads.submit(self._run, path, packed)

    def __enter__(self) -> "Workers":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._threads.shutdown()
                self._raise_failure()
        finally:
            self._end()

    def _run(self, path: Path, packed: bytes) -> None:
        """Encode a shard in this thread's process."""
        try:
            if self._failure is None:
                self._ask(path, packed)
        except BaseException as error:
            self._failure = self._failure or error
        finally:
            self._free.release()

    def _ask(self, path: Path, packed: bytes) -> None:
        """Send a job and wait for the answer."""
        process = self._process()
        job = json.dumps({"path": str(path.resolve())}).encode() + b"\n" + packed + b"\n"
        answer = b""
        with suppress(BrokenPipeError):
            process.stdin.write(job)
            process.stdin.flush()
            answer = process.stdout.readline()
        if not answer:
            raise _death(process.wait())
        if failure := json.loads(answer):
            raise _failure(failure)

    def _process(self) -> Any:
        """Return the process of this thread, started on first use."""
        if not hasattr(self._own, "process"):
            with self._starting:
                if self._ended:
                    raise errors.HeedfulError("Encoding was ended.")
                self._own.process = process = _start()
                self._processes.append(process)
            with suppress(BrokenPipeError):
                process.stdin.write(json.dumps(self._setup).encode() + b"\n")
        return self._own.process

    def _end(self) -> None:
        """Kill all processes."""
        with self._starting:
            self._ended = True
            for process in self._processes:
                process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in self._processes:
            with suppress(BrokenPipeError), process:
                pass  # closes its pipes and waits for it

    def _raise_failure(self) -> None:
        """Raise the first error, if there is one."""
        if self._failure is not None:
            raise self._failure


def _start() -> Any:
    """Start a process."""
    command = [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)]
    # Encoding has no matrix products: threads for them would only take memory.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    try:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
    except OSError as error:
        raise errors.HeedfulError(
            "Text is encoded by several processes, but one could not be started: "
            f"“{error.strerror or error}”; use fewer processes (--processes of `heedful data "
            f"prepare`, or train.threads). {_KEPT}"
        ) from error


def _death(status: int) -> errors.HeedfulError:
    """Describe how a process ended unexpectedly."""
    if status < 0:
        how = f"was ended by {signal.Signals(-status).name}"
        how += ", which the system sends when memory is full" if -status == signal.SIGKILL else ""
    else:
        how = f"ended with status {status}"
    return errors.HeedfulError(
        f"Every process that encodes text must finish, but one {how}; its output is above. "
        f"{_KEPT} Fewer processes (--processes of `heedful data prepare`, or train.threads) need "
        "less memory."
    )


def _failure(answer: dict[str, Any]) -> BaseException:
    """Convert an answer to an exception."""
    kind = answer["error"]
    if kind == "OSError":
        return OSError(answer["number"], answer["message"])
    if kind == "MemoryError":
        return errors.HeedfulError(
            "Every process that encodes text needs about 150 MB of memory, but one did not get "
            "it; use fewer processes (--processes of `heedful data prepare`, or train.threads). "
            f"{_KEPT}"
        )
    named = getattr(errors, kind, errors.HeedfulError)
    return named(answer["message"])
