"""
A process with everything imported that forks for each command.

Importing torch takes longer than most commands that the tests try. The command line runs in a
process and session of its own all the same, with its own streams, folder, environment and
arguments; how it starts from nothing is for ``tests/structure/test_start.py``, for the README's
commands and for every test that starts ``python -m heedful`` itself.

Listens at the socket whose path is its argument, until standard input ends. Who connects sends
three streams and, as a line of JSON, ``args``, ``cwd`` and ``environ`` (see
``tests/support/cli_stub.py``), and is told the process id and then the exit code, minus the number
of the signal if there was one.
"""

import json
import os
import select
import signal
import socket
import sys
import traceback
from types import FrameType


def preload() -> None:
    """Import what the commands import sooner or later, with what they set before that."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import matplotlib.backends.backend_agg
    import matplotlib.backends.backend_pdf
    import matplotlib.backends.backend_svg
    import matplotlib.font_manager  # noqa: F401
    import sacrebleu.metrics  # noqa: F401
    import torch
    import torch._dynamo  # noqa: F401  # with the first optimiser, for more than a second
    import transformers.models.marian.modeling_marian
    import transformers.models.marian.tokenization_marian  # noqa: F401

    import heedful.analysis.attend
    import heedful.analysis.compare
    import heedful.analysis.evaluate
    import heedful.analysis.info
    import heedful.exchange.convert
    import heedful.preparation.prepare
    import heedful.preparation.show
    import heedful.quickstart
    import heedful.serve.server
    import heedful.training.train
    import heedful.translation.score
    import heedful.translation.translate  # noqa: F401


def become(request: dict, streams: list[int]) -> None:
    """Take on the streams, the folder, the environment and the arguments of a command."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environ"])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", closefd=False)
    sys.argv = ["heedful", *request["args"]]


def run() -> int:
    """Run the command line, or Python after ``-c``, and give the exit code as python would."""
    from heedful.cli.main import main

    try:
        if sys.argv[1:2] == ["-c"]:
            program = sys.argv[2]
            sys.argv[:3] = ["-c"]
            sys.path.insert(0, "")
            exec(program, {"__name__": "__main__"})  # our own
        else:
            main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def answer(connection: socket.socket) -> None:
    """Run one command in a child and report its exit code."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    request = json.loads(connection.makefile().readline())
    child = os.fork()
    if child == 0:
        os.setsid()  # first, for whoever knows the process id may kill its group
        connection.sendall(f"{os.getpid()}\n".encode())
        connection.close()
        become(request, streams)
        code = run()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    for stream in streams:
        os.close(stream)  # else the reader of a pipe would wait for us
    _, status = os.waitpid(child, 0)
    connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def reap(number: int, frame: FrameType | None) -> None:
    """Reap the children that have ended."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


def serve(path: str) -> None:
    """Fork for every connection until the input ends."""
    preload()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        while listener in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                try:
                    answer(connection)
                except BrokenPipeError:
                    pass  # whoever asked is gone
                finally:
                    os._exit(0)
            connection.close()


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, reap)
    serve(sys.argv[1])
