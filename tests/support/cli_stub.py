"""
The client of the fork server; run as a program, it stands in for ``heedful``.

A program that is written so starts in a fiftieth of a second, and what it stands for reads and
writes the very streams that the shell gave it. Signals are passed on.
"""

import json
import os
import signal
import socket
import sys


def ask(
    address: str, args: list[str], streams: tuple[int, int, int], cwd: str, environ: dict[str, str]
) -> socket.socket:
    """Start a command through the server, which answers with process id and exit code."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    socket.send_fds(connection, [b"\n"], streams)
    request = {"args": args, "cwd": cwd, "environ": environ}
    connection.sendall(json.dumps(request).encode() + b"\n")
    return connection


if __name__ == "__main__":
    path, *words = sys.argv[1:]
    answers = ask(path, words, (0, 1, 2), os.getcwd(), dict(os.environ)).makefile()
    started = int(answers.readline())
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: os.kill(started, received))
    code = int(answers.readline())
    sys.exit(code if code >= 0 else 128 - code)
