"""A server process, and many clients in one event loop."""

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.process import status_bytes

PATIENCE = 120.0


@dataclass(frozen=True)
class SentRequest:
    """A request of a client."""

    path: str
    """The path of the URL, such as ``/translate``."""
    body: bytes
    """The body: encoded JSON or other text."""

    @classmethod
    def of(cls, path: str, **fields: object) -> "SentRequest":
        """Build a request with fields as JSON."""
        return cls(path, json.dumps(fields).encode())


@dataclass(frozen=True)
class ClientReply:
    """The answer to a request, or the reason why there is no answer."""

    number: int
    """Index of the request."""
    begun: float
    ended: float
    """Time of the end; `begun` and `ended` are times of the monotonic clock."""
    status: int
    """HTTP status; 0 if the connection was refused or ended without an answer."""
    body: bytes = b""
    """Body of the answer."""
    problem: str = ""
    """The reason for a missing answer."""

    @property
    def seconds(self) -> float:
        """Seconds from the request to the end of the answer."""
        return self.ended - self.begun


class ClientConnection:
    """A client that speaks HTTP/1.1 over one connection."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def post(self, request: SentRequest) -> tuple[int, bytes]:
        """Send a request and wait for its status and body."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self._streams
        writer.write(
            f"POST {request.path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            f"content-length: {len(request.body)}\r\n\r\n".encode()
            + request.body
        )
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        status, fields = int(head.split(" ", 2)[1]), head.split("\r\n")[1:]
        headers = dict(field.split(": ", 1) for field in fields if ": " in field)
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(await reader.readline(), 16):
                body += await reader.readexactly(size)
                await reader.readline()
            await reader.readline()
        else:
            body = await reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("connection") == "close":
            self.close()
        return status, body


async def load(
    port: int,
    make: Callable[[int], SentRequest],
    *,
    clients: int,
    requests: int | None = None,
    seconds: float | None = None,
    tell: Callable[[ClientReply], None] | None = None,
) -> list[ClientReply]:
    """Send requests from several clients in parallel, up to a limit of requests or seconds."""
    numbers = itertools.count()
    until = time.monotonic() + seconds if seconds is not None else None
    answers: list[ClientReply] = []

    async def client() -> None:
        with closing(ClientConnection(port)) as connection:
            for number in numbers:
                if requests is not None and number >= requests:
                    return
                if until is not None and time.monotonic() >= until:
                    return
                begun = time.monotonic()
                try:
                    async with asyncio.timeout(PATIENCE):
                        status, body = await connection.post(make(number))
                    problem = ""
                except (OSError, EOFError, TimeoutError) as error:
                    connection.close()
                    status, body, problem = 0, b"", type(error).__name__
                answer = ClientReply(number, begun, time.monotonic(), status, body, problem)
                answers.append(answer)
                if tell is not None:
                    tell(answer)
                if problem == "ConnectionRefusedError":
                    return

    await asyncio.gather(*(client() for _ in range(clients)))
    return answers


def processor_seconds(process: "subprocess.Popen[str]") -> float:
    """Read the CPU seconds of a process that is still running."""
    text = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii")
    # The name may contain spaces. After it, the state is field 3, and the times are fields 14 and
    # 15.
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class ServerProcess:
    """A running server, with its port and memory."""

    def __init__(self, process: "subprocess.Popen[str]", port: int) -> None:
        self.process, self.port = process, port

    @property
    def memory(self) -> int:
        """Memory of the process in bytes."""
        return status_bytes("VmRSS", self.process.pid)

    @property
    def peak(self) -> int:
        """Peak memory of the process in bytes."""
        return status_bytes("VmHWM", self.process.pid)

    def stop(self) -> None:
        """Send the server a signal to stop."""
        self.process.send_signal(signal.SIGTERM)


@contextmanager
def serving(*arguments: object) -> Iterator[ServerProcess]:
    """Run ``heedful serve`` on a free port."""
    command = [sys.executable, "-m", "heedful", "serve", *map(str, arguments)]
    process = subprocess.Popen(
        [*command, "--port", "0", "--quiet"],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "NO_COLOR": "1"},
    )
    try:
        if process.stdout is None:
            raise RuntimeError("a pipe was asked for")
        for line in process.stdout:
            if line.startswith("http://"):
                break
        else:
            raise RuntimeError("the server ended before it served")
        yield ServerProcess(process, int(line.rpartition(":")[2]))
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
