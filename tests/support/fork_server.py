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

import gc
import json
import os
import select
import signal
import socket
import sys
import traceback
from contextlib import suppress
from importlib.util import find_spec


def preload() -> None:
    """Import what the commands import sooner or later, with what they set before that."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    import matplotlib.backends.backend_agg
    import matplotlib.backends.backend_pdf
    import matplotlib.backends.backend_svg
    import matplotlib.font_manager  # noqa: F401
    import sacrebleu.metrics  # noqa: F401
    import torch
    import torch._dynamo  # noqa: F401  # with the first optimizer, for more than a second
    import transformers.models.marian.modeling_marian
    import transformers.models.marian.tokenization_marian  # noqa: F401

    import heedful.analysis.attend
    import heedful.analysis.compare
    import heedful.analysis.evaluate
    import heedful.analysis.info
    import heedful.cli.main
    import heedful.exchange.convert
    import heedful.preparation.prepare
    import heedful.preparation.show
    import heedful.quickstart
    import heedful.training.train
    import heedful.translation.score
    import heedful.translation.translate

    # a machine that tests what computes on a GPU is without the extras `serve` and `paper`
    if find_spec("uvicorn"):
        import heedful.serve.server  # noqa: F401
    if find_spec("sacremoses"):
        import sacremoses  # noqa: F401  # with each of Marian's tokenizers


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


def begin(connection: socket.socket) -> int:
    """Fork for one command, send its process id and return it."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    request = json.loads(connection.makefile().readline())
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setsid()  # first, for whoever knows the process id may kill its group
            connection.sendall(f"{os.getpid()}\n".encode())
            connection.close()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            become(request, streams)
            code = run()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
    for stream in streams:
        os.close(stream)  # else the reader of a pipe would wait for us
    return child


def answer(running: dict[int, socket.socket]) -> None:
    """Send the exit codes of the commands that have ended."""
    while running:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            return
        with suppress(BrokenPipeError), running.pop(child) as connection:
            connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def serve(path: str) -> None:
    """Fork for every connection until the input ends."""
    preload()
    gc.collect()
    gc.freeze()  # a collection in a fork would touch, and so copy, all that is here
    wakes, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(woken)
    running: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        while True:
            ready = select.select([listener, sys.stdin, wakes], [], [])[0]
            if wakes in ready:
                os.read(wakes, 1 << 10)
                answer(running)
            if listener in ready:
                connection, _ = listener.accept()
                running[begin(connection)] = connection
            elif sys.stdin in ready:
                return


if __name__ == "__main__":
    serve(sys.argv[1])
