"""
The `heedful` command and its subcommands.

Heavy modules such as torch are imported only when a command needs them, so `--help` is quick. Every
error that a user can cause gives one paragraph on standard error and an exit code. The code is 2 if
the command line or the input is wrong, and 1 after any other failure.
"""

import signal
import sys
import warnings
from contextlib import suppress
from copy import copy
from types import FrameType
from typing import Annotated, NoReturn

import typer
from typer.exceptions import TyperException

from heedful._version import __version__
from heedful.cli import (
    attend,
    average,
    bench,
    compare,
    data,
    evaluate,
    export,
    extend,
    hub,
    import_,
    info,
    paper,
    plot,
    quickstart,
    score,
    serve,
    train,
    translate,
)
from heedful.cli.plugin_option import with_plugins
from heedful.cli.terminal_text import fit_streams
from heedful.cli.usage import explain_usage
from heedful.errors import HeedfulError, escape_controls
from heedful.machine.environment import WAITING, set_variables
from heedful.machine.memory import check_address_space, is_lack_of_memory, lack_of_memory
from heedful.machine.processor import check_threads, omp_threads
from heedful.tasks.registry import task_modules

app = typer.Typer(
    name="heedful",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain lines as wide as the terminal, no boxes
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    """Print the version and exit."""
    if wanted:
        typer.echo(f"heedful {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Train, use, evaluate and visualize the Transformer of “Attention Is All You Need”."""


app.command()(quickstart.quickstart)
app.add_typer(data.app)
app.command()(with_plugins(train.train))
app.command()(with_plugins(average.average))
app.command()(with_plugins(extend.extend))
app.command()(with_plugins(translate.translate))
app.command()(with_plugins(score.score))
app.command()(with_plugins(attend.attend))
app.command(context_settings={"auto_envvar_prefix": "HEEDFUL_SERVE"})(with_plugins(serve.serve))
app.command()(evaluate.evaluate)
app.command()(with_plugins(plot.plot))
app.command()(with_plugins(compare.compare))
app.command("import")(import_.import_)
app.command()(with_plugins(export.export))
for _task in task_modules("cli"):
    app.add_typer(_task.app)
app.add_typer(hub.app)
app.add_typer(bench.app)
app.add_typer(paper.app)
app.command()(with_plugins(info.info))

# oneDNN and torch each have a cache of kernels. Variables that the user has set stay unchanged.
_SEARCH = WAITING | {"LRU_CACHE_CAPACITY": "1", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "128"}
# Training meets the same shapes in every epoch; with 128 cached kernels it is a seventh slower.
_TRAINING = _SEARCH | {"GOMP_SPINCOUNT": "1000", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "512"}
_WITHOUT_TORCH = ("data", "evaluate", "plot")
_TRAINS = (
    *(("train",), ("quickstart",), ("bench", "train"), ("paper",)),
    *(_task.TRAINS for _task in task_modules("cli")),
)


def main() -> None:
    """
    Run the command line.

    The operations of a training step take longer than those of a search. So in training, idle
    threads spin for only a hundredth of a millisecond. Two training runs of a minute each took two
    minutes on two shared cores, but six with the longer spin time of a search.

    In bf16, oneDNN compiles a kernel of a quarter of a megabyte for every new shape of a product.
    Shapes change with every batch. By default torch caches 1,024 kernels, and oneDNN another 1,024.
    A single cache of the newest 128 kernels is enough for a search; training caches 512.
    """
    fit_streams()
    warnings.showwarning = _show_warning
    trains = any(tuple(sys.argv[1 : 1 + len(command)]) == command for command in _TRAINS)
    set_variables(_TRAINING if trains else _SEARCH, replace=True)
    interrupts = _record_interrupts()
    try:
        check_threads(omp_threads(), "OMP_NUM_THREADS")
        if not ({"--help", "--version", *_WITHOUT_TORCH} & {*sys.argv[1:]}):
            check_address_space()
        code = _run(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        _end_by(signal.SIGINT)
    except BrokenPipeError:
        _end_by(signal.SIGPIPE)
    except HeedfulError as error:
        _fail(str(error), error.exit_code)
    except Exception as error:
        if interrupts and not isinstance(error, OSError):
            _end_by(signal.SIGINT)
        if is_lack_of_memory(error):
            _fail(lack_of_memory(error), 1)
        _fail_by_plugin(error)
        if not isinstance(error, OSError):
            raise
        with suppress(OSError):
            sys.stdout.close()  # otherwise Python flushes it again at exit and prints a message
        name = f"{error.filename}: " if error.filename else ""
        _fail(f"{name}{error.strerror or error}.", 1)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """Run a command, and format typer's errors like all other errors."""
    command = typer.main.get_command(_only_the_named(arguments))
    try:
        with command.make_context("heedful", arguments) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except TyperException as error:
        text = error.format_message()
        if text.startswith("Usage:"):  # the help of a command without arguments
            typer.echo(text, err=True)
            return error.exit_code
        _fail(explain_usage(error, command, arguments), error.exit_code)
    return 0


def _only_the_named(arguments: list[str]) -> typer.Typer:
    """Return the program with only the named command; building all commands takes longer."""
    name = arguments[0] if arguments else ""
    program = copy(app)
    program.registered_commands = [
        command
        for command in app.registered_commands
        if command.callback and name == (command.name or command.callback.__name__)
    ]
    program.registered_groups = [
        group
        for group in app.registered_groups
        if group.typer_instance and name == group.typer_instance.info.name
    ]
    is_named = program.registered_commands or program.registered_groups
    return program if is_named else app


def _fail_by_plugin(error: Exception) -> None:
    """Exit with a message that names the plugin's line if a plugin caused the error."""
    if "heedful.plugins" in sys.modules:
        from heedful.plugins import failure_of_plugin

        if failure := failure_of_plugin(error):
            _fail(str(failure), failure.exit_code)


def _record_interrupts() -> list[int]:
    """
    Record each Ctrl-C from now on, in addition to raising `KeyboardInterrupt`.

    A module that is being imported may catch the interrupt and raise an error that hides it.
    """
    recorded: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        recorded.append(number)
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, handle)
    return recorded


def _end_by(number: signal.Signals) -> NoReturn:
    """End the process by the signal itself, so that shells see which signal ended it."""
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
    sys.exit(128 + number)  # if the signal is blocked


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning in the style of commands, without its source line."""
    print(f"heedful: warning: {escape_controls(str(message))}", file=sys.stderr)


def _fail(message: str, code: int) -> NoReturn:
    """Print one paragraph on standard error and exit."""
    with suppress(OSError):  # standard error may be closed
        print(f"heedful: {escape_controls(message)}", file=sys.stderr, flush=True)
    sys.exit(code)
