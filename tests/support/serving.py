"""A server process and its client."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2

from tests.support.fork_client import Started, Zygote

# Seconds: what is waited for comes much sooner, but not on a machine that has much else to do.
PATIENCE = 200


class Serving:
    """A server that was started; its address, and a client for it."""

    def __init__(self, started: Started) -> None:
        self.started = started
        self.address = self._address()
        # No connection is kept: the server may close it in the very moment it is used again.
        kept = httpx2.Limits(max_keepalive_connections=0)
        self.client = httpx2.Client(base_url=self.address, timeout=PATIENCE, limits=kept)

    def _address(self) -> str:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for line in self.started.written(1).splitlines(keepends=True):
                if line.startswith("http://") and line.endswith("\n"):
                    return line.strip()
            assert self.started.poll() is None, self.started.written(2)
            time.sleep(0.02)
        raise AssertionError(f"no address: {self.started.written(2)}")

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def log(self) -> str:
        """What the server wrote to standard error so far."""
        return self.started.written(2)

    def metric(self, name: str) -> float:
        """A number of /metrics; the sum over its labels."""
        lines = self.client.get("/metrics").text.splitlines()
        found = [line for line in lines if line.split("{")[0].split(" ")[0] == name]
        return sum(float(line.rpartition(" ")[2]) for line in found)

    def until(self, condition) -> None:
        """Wait for something to become true; a busy machine may take its time."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, self.log()
            time.sleep(0.01)

    def signal(self, number: int) -> None:
        os.kill(self.started.pid, number)


@contextmanager
def serving(zygote: Zygote, *args: object, env: dict[str, str] | None = None) -> Iterator[Serving]:
    """Run ``heedful serve`` on a free port, and stop it."""
    environ = {**zygote.environ, **(env or {})}
    started = zygote.start("serve", *args, "--port", 0, "--device", "cpu", environ=environ)
    server = None
    try:
        server = Serving(started)
        yield server
    finally:
        if server is not None:
            server.client.close()
        started.send_signal(signal.SIGTERM)
        started.communicate(timeout=PATIENCE)
