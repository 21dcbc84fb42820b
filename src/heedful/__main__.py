"""The ``heedful`` command, also available as ``python -m heedful``."""

import os
import signal
import sys


def main() -> None:
    """Run the command line; while modules are being imported, Ctrl-C ends the process at once."""
    _fill_what_is_closed()
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # unless the parent process ignores SIGINT
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from heedful.cli.main import main as run  # noqa: PLC0415

    signal.signal(signal.SIGINT, before)
    run()


def _fill_what_is_closed() -> None:
    """
    Open the null device for closed standard streams, so that no other file gets their descriptors.

    A command that reads from stdin or writes to stdout then reports an error if the stream is
    closed. Messages to a closed stderr are lost.
    """
    wrong = {"stdin": os.O_WRONLY, "stdout": os.O_RDONLY, "stderr": os.O_WRONLY}
    for number, (name, way) in enumerate(wrong.items()):
        if getattr(sys, name) is not None:
            continue
        opened = os.open(os.devnull, way)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        file = open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        setattr(sys, name, file)


if __name__ == "__main__":
    main()
