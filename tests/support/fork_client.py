"""The ``heedful`` command as a fork of a process with everything imported."""

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.cli_stub import ask

TESTS = Path(__file__).parent


class Started:
    """A started command, with the interface of Popen."""

    def __init__(
        self, address: str, args: list[str], stdin: str, cwd: Path, environ: dict[str, str]
    ) -> None:
        self.args = ["heedful", *args]
        self.returncode: int | None = None
        # Closed by `communicate`; a temporary file of a command that is killed goes with the test.
        self._files = [tempfile.TemporaryFile() for _ in range(3)]  # noqa: SIM115
        self._files[0].write(stdin.encode())
        self._files[0].seek(0)
        streams = tuple(file.fileno() for file in self._files)
        self._answers = ask(address, args, streams, str(cwd), environ)
        self._answered = b""
        while b"\n" not in self._answered:
            self._hear()
        self.pid = int(self._answered.split(b"\n")[0])

    def _hear(self) -> None:
        part = self._answers.recv(100)
        if not part:
            raise ConnectionError("the zygote has ended")
        self._answered += part
        if self._answered.count(b"\n") == 2:
            self.returncode = int(self._answered.split(b"\n")[1])
            self._answers.close()

    def fileno(self) -> int:
        """For `select`, which waits for the end of the command."""
        return self._answers.fileno()

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._answers], [], [], 0)[0]:
            self._hear()
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait for the end; kill the command after the time limit."""
        end = time.monotonic() + timeout
        try:
            while self.returncode is None:
                left = end - time.monotonic()
                if left <= 0 or not select.select([self._answers], [], [], left)[0]:
                    raise subprocess.TimeoutExpired(self.args, timeout)
                self._hear()
        except BaseException:
            os.killpg(self.pid, signal.SIGKILL)
            raise
        return self.returncode

    def communicate(self, timeout: float = 500) -> tuple[str, str]:
        """Wait, and return standard output and error; works once."""
        self.wait(timeout)
        for file in self._files:
            file.seek(0)
        _, output, errors = (file.read().decode() for file in self._files)
        for file in self._files:
            file.close()
        return output, errors

    def written(self, stream: int) -> str:
        """What was written to standard output (1) or error (2) so far."""
        descriptor = self._files[stream].fileno()
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


class Zygote:
    """A process with everything imported, of which each command is a fork."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self.environ = environ
        self.address = str(folder / "socket")
        self.process = subprocess.Popen(
            # -P: the modules beside it must not be taken for the libraries of their names
            [sys.executable, "-P", TESTS / "fork_server.py", self.address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # In huge pages there is less to copy for each fork, and a fork meets fewer new pages.
            env={**environ, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
            start_new_session=True,
        )
        assert self.process.stdout.readline() == b"ready\n"
        # A folder for PATH, in which the program asks for a fork.
        self.programs = folder / "bin"
        self.programs.mkdir()
        program = self.programs / "heedful"
        words = f'"{sys.executable}" -S -E "{TESTS / "cli_stub.py"}" "{self.address}"'
        program.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
        program.chmod(0o755)

    def start(
        self,
        *args: object,
        stdin: str = "",
        cwd: Path | None = None,
        environ: dict[str, str] | None = None,
    ) -> Started:
        """Start the command with arguments, which are written as text."""
        words = [*map(str, args)]
        return Started(self.address, words, stdin, cwd or Path.cwd(), environ or self.environ)
