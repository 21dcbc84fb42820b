"""Run the command line with ``python -m heedful``, or as the program ``heedful``."""

import signal


def main() -> None:
    """Run the command line; Ctrl-C ends the process at once while its modules are read."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # not where whoever started it has it ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from heedful.cli.main import main as run  # noqa: PLC0415

    signal.signal(signal.SIGINT, before)
    run()


if __name__ == "__main__":
    main()
