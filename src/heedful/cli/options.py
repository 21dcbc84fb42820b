"""Options that several commands share."""

import inspect
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from heedful.errors import escape_controls
from heedful.search.settings import SearchOptions

Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
Precision = Annotated[str, typer.Option(help="auto, fp32 or bf16; auto measures the machine once.")]
SearchPrecision = Annotated[
    str,
    typer.Option(
        help="auto, fp32, bf16 or int8; auto measures the machine once. int8 rounds weights and "
        "states to 8 bits: fastest on x86 processors, but scores change a little."
    ),
]
SEARCH_PRECISIONS = ("auto", "fp32", "bf16", "int8")
Threads = Annotated[int, typer.Option(min=0, help="CPU threads; 0 for all cores.")]
Weights = Annotated[
    str,
    typer.Option(
        show_default=False,
        help="average, best, last or step-N; by default the average if there is one, else the "
        "best, else the last.",
    ),
]
Alignments = Annotated[bool, typer.Option("--alignments", help="Write word alignments: 0-0 1-2.")]
AlignBy = Annotated[
    str,
    typer.Option(
        help="Attention that alignments are computed from: layer=2, layer=-1 "
        "(the last), layer=mean, head=1, shift, "
        "threshold=0.3; separated by commas. Default: all heads of the penultimate of six layers, "
        "or of the last of fewer, one source word for each target word."
    ),
]
AcceptDifferences = Annotated[
    bool,
    typer.Option(
        "--accept-differences",
        help="Succeed even if fewer than 95 % of the translations are equal on both sides.",
    ),
]
Format = Annotated[str, typer.Option(help="text or jsonl.")]

Command = Callable[..., None]


def with_search_flags(**before: Sequence[str]) -> Callable[[Command], Command]:
    """
    Replace the parameter `search` of a command by flags of `SearchOptions`.

    `before`: of a parameter, the names of the flags that stand before it in the help.
    """
    names = [name for group in before.values() for name in group]

    def decorate(command: Command) -> Command:
        signature = inspect.signature(command)
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            parameters += map(_search_flag, before.get(parameter.name, ()))
            if parameter.name != "search":
                parameters.append(parameter)

        @wraps(command)
        def run(**values: Any) -> None:
            command(search={name: values.pop(name) for name in names}, **values)

        # typer reads both
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {flag.name: flag.annotation for flag in parameters}
        return run

    return decorate


def _search_flag(name: str) -> inspect.Parameter:
    """Make the flag of a field of `SearchOptions`."""
    field = SearchOptions.__dataclass_fields__[name]
    # A flag has one type: what may be a number or text is read as text.
    kind = str | None if str in get_args(field.type) else field.type
    option = typer.Option(help=field.metadata["help"], min=field.metadata["least"])
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=field.default,
        annotation=Annotated[kind, option],
    )


def check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse a value that is not among the choices; exits with code 2."""
    if value not in choices:
        raise typer.BadParameter(
            f"must be {' or '.join(choices)}, but is {value!r}.", param_hint=option
        )


def check_stop(value: str) -> None:
    """Refuse an unknown stopping rule; exits with code 2."""
    from heedful.search.stopping import stopping_rules

    check_choice("--stop", value, tuple(stopping_rules()))


def check_runs(runs: Sequence[Path], command: str) -> None:
    """
    Refuse text that was given where run folders are named; exits with code 2.

    `command`: the words of the command.
    """
    from heedful.runs.foreign_models import recognise

    for run in runs:
        text = str(run)
        if run.is_file() and recognise(run) is None:
            raise typer.BadParameter(
                f"must be a run folder, but {run} is a file; text is named by --input.",
                param_hint="RUN",
            )
        if not run.exists() and (" " in text or run != runs[0]):
            first = runs[0] if run != runs[0] else "RUN"
            sentence = " ".join(str(other) for other in runs if not other.exists())
            raise typer.BadParameter(
                f"must be a run folder, but {text!r} is not there; a sentence is read from stdin "
                f"(echo {shlex.quote(sentence)} | heedful {command} {shlex.quote(str(first))}) or "
                "from a file (--input FILE).",
                param_hint="RUN",
            )


def check_tag(target_language: str | None, tags: Sequence[str]) -> None:
    """
    Refuse a language that a model has no tag for; exits with code 2.

    `target_language`: language code; None if none was asked for.
    """
    if target_language is not None and f">>{target_language}<<" not in tags:
        raise typer.BadParameter(
            f"must be a language of this model's tags ({', '.join(tags) or 'none'}), but is "
            f"{target_language or 'empty'}.",
            param_hint="--target-language",
        )


def check_output(output: Path | None, read: Mapping[str, Path | None]) -> None:
    """Refuse to overwrite a file that is read, or to write where none can be; exits with code 2."""
    if output is not None and output.is_dir():
        raise typer.BadParameter(
            f"must be a file, but {output} is a folder.", param_hint="--output"
        )
    if output is not None and not output.parent.is_dir():
        raise typer.BadParameter(
            f"must be in an existing folder, but {output.parent} does not exist.",
            param_hint="--output",
        )
    if output is None or not output.exists():
        return
    for option, path in read.items():
        if path is not None and path.exists() and output.samefile(path):
            raise typer.BadParameter(f"must be another file than {option}.", param_hint="--output")


def warn(text: str) -> None:
    """Print a warning on standard error."""
    typer.echo(f"heedful: warning: {escape_controls(text)}", err=True)


def say(text: str) -> None:
    """Print progress on standard error."""
    typer.echo(escape_controls(text), err=True)
