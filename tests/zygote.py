"""
A process that has everything imported and forks for each command that is to be run.

Importing torch takes longer than most commands that the tests try. The command line runs in a
process and session of its own all the same, with its own streams, folder and arguments; how it
starts from nothing is for ``tests/structure/test_start.py`` and for every test that starts
``python -m heedful`` itself.

Reads one JSON object a line from standard input: ``args``, ``cwd``, and the files ``stdin``,
``stdout`` and ``stderr``. Answers with the process id, then with the exit code.
"""

import json
import os
import sys
import traceback


def preload() -> None:
    """Import what the commands import."""
    import sacrebleu.metrics  # noqa: F401
    import torch  # noqa: F401

    import heedful.workflow.ahead
    import heedful.workflow.compare
    import heedful.workflow.evaluate
    import heedful.workflow.info
    import heedful.workflow.score
    import heedful.workflow.show
    import heedful.workflow.train
    import heedful.workflow.translate  # noqa: F401


def become(request: dict) -> None:
    """Take on the streams, the folder and the arguments of a command."""
    os.setsid()
    os.chdir(request["cwd"])
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    streams = [(request["stdin"], os.O_RDONLY), (request["stdout"], flags)]
    for number, (path, how) in enumerate([*streams, (request["stderr"], flags)]):
        os.dup2(os.open(path, how, 0o600), number)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", closefd=False)
    sys.argv = ["heedful", *request["args"]]


def run() -> int:
    """Run the command line and give its exit code, as the interpreter would."""
    from heedful.cli.main import main

    try:
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


def serve() -> None:
    """Fork for every request until the input ends."""
    answers = os.dup(1)
    os.dup2(2, 1)
    preload()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            become(request)
            code = run()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        os.write(answers, f"{child}\n".encode())
        _, status = os.waitpid(child, 0)
        os.write(answers, f"{os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    serve()
