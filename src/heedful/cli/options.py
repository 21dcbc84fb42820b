"""Options that several commands share."""

import inspect
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields
from pathlib import Path
from types import EllipsisType, UnionType
from typing import Annotated, Any, Literal, NoReturn, get_args, get_origin

import typer

from heedful.cli.signatures import Command, with_parameters
from heedful.errors import escape_controls
from heedful.runs.hub_names import run_path
from heedful.text.compression import without_compression
from heedful.text.language_codes import in_another_script, look_up


def command_group(name: str, help: str) -> typer.Typer:
    """Create a command that has subcommands."""
    return typer.Typer(name=name, help=help, no_args_is_help=True, rich_markup_mode=None)


def refuse(option: str, message: str) -> NoReturn:
    """Exit with code 2: the option or argument with this name is wrong."""
    raise typer.BadParameter(message, param_hint=option)


def run_argument(help: str, metavar: str = "RUN") -> Any:
    """Declare an argument that is a run folder or a name on the hub."""
    return typer.Argument(metavar=metavar, help=help, parser=run_path)


RunPath = Annotated[Path, run_argument("A run folder.")]
Recipe = Annotated[
    str, typer.Argument(metavar="RECIPE", help="Name of a built-in recipe, or a TOML file.")
]
PrintConfig = Annotated[
    bool, typer.Option("--print-config", help="Print all active settings as TOML and exit.")
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Check everything and print what training would do, without training. The text is "
        "prepared in a temporary folder.",
    ),
]
Device = Annotated[
    str, typer.Option(help="Device: auto (a GPU if there is one), cpu, cuda or cuda:N.")
]
_PRECISION = typer.Option(
    help="auto, fp32 or bf16; auto uses bf16 if it is clearly faster on this machine, else fp32."
)
Precision = Annotated[Literal["auto", "fp32", "bf16"], _PRECISION]
TrainingPrecision = Annotated[str, _PRECISION]
"""The precision of training; empty for the recipe's precision."""
SearchPrecision = Annotated[
    Literal["auto", "fp32", "bf16", "int8"],
    typer.Option(
        help="auto, fp32, bf16 or int8; auto uses bf16 if it is clearly faster on this machine, "
        "else fp32. On x86 CPUs, int8 rounds weights and activations to 8 bits, which is fastest "
        "but changes scores a little."
    ),
]
Threads = Annotated[
    int,
    typer.Option(
        min=0,
        help="Number of CPU threads; 0 means OMP_NUM_THREADS or, if it is not set, one per core.",
    ),
]
Weights = Annotated[
    str,
    typer.Option(
        show_default=False,
        help="Weights to load: average, best, last or step-N. The default is the first of "
        "average, best and last that exists; an average older than the last checkpoint "
        "does not count.",
    ),
]
Alignments = Annotated[
    bool,
    typer.Option(
        "--alignments",
        help="Write word alignments, such as 0-0 1-2. Words are separated by spaces only and "
        "counted from 0.",
    ),
]
AlignBy = Annotated[
    str,
    typer.Option(
        help="Settings for alignments from attention, separated by commas, such as layer=2, "
        "layer=-1 (the last), layer=mean, head=1, shift or threshold=0.3. By default, the mean "
        "of the heads in the penultimate layer links each target word to one source word; with "
        "fewer than six layers, the last layer is used."
    ),
]
AcceptDifferences = Annotated[
    bool,
    typer.Option(
        "--accept-differences",
        help="Succeed even if the two models agree on fewer than 95% of the translations.",
    ),
]
Reading = Annotated[
    Literal["exact", "text"] | None,
    typer.Option(
        help="How lines are read: exact (only white space is changed), or text (capitals, emoji "
        "and placeholders are handled separately); by default the run's data.reading.",
    ),
]
Format = Annotated[Literal["text", "jsonl"], typer.Option(help="text or jsonl.")]
Engine = Annotated[
    Literal["torch", "ctranslate2"],
    typer.Option(
        help="torch, or ctranslate2 for folders written by `heedful export --format ctranslate2`."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Sentences = Annotated[
    Path | None,
    typer.Option(
        help="File of source sentences for the comparison, one per line; by default heedful "
        "generates them."
    ),
]
SignificanceTest = Annotated[
    Literal["randomization", "bootstrap"], typer.Option(help="Significance test of --against.")
]
Trials = Annotated[
    int, typer.Option(min=100, help="Number of bootstrap samples or random permutations.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random draws.")]


def with_flags(
    replaced: str, *kinds: Any, **before: Sequence[str] | EllipsisType
) -> Callable[[Command], Command]:
    """
    Replace the dict parameter `replaced` of a command with flags for the fields of dataclasses.

    `kinds`: the dataclasses, or instances whose values are the defaults. `before`: for a parameter,
    the names of the flags that precede it in the help; `...` stands for all remaining flags.

    The command still receives a dict. The dict lacks fields that the user does not set, unless they
    have a default.
    """
    options = {option.name: option for kind in kinds for option in fields(kind)}
    defaults = {
        option.name: getattr(kind, option.name) for kind in kinds for option in fields(kind)
    }
    named = {name for group in before.values() if group is not ... for name in group}
    rest = [name for name in options if name not in named and "help" in options[name].metadata]
    places = {place: rest if group is ... else group for place, group in before.items()}
    names = [name for group in places.values() for name in group]

    def decorate(command: Command) -> Command:
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command).parameters.values():
            parameters += [_flag(options[n], defaults[n]) for n in places.get(parameter.name, ())]
            if parameter.name != replaced:
                parameters.append(parameter)

        def run(**values: Any) -> None:
            chosen = {name: values.pop(name) for name in names}
            values[replaced] = {n: value for n, value in chosen.items() if value not in (None, [])}
            command(**values)

        return with_parameters(command, run, parameters)

    return decorate


def _flag(option: "Field[Any]", default: Any) -> inspect.Parameter:
    """Return the parameter that declares the flag of a dataclass field."""
    about = {"name": "--" + option.name.replace("_", "-"), **option.metadata["option"]}
    flag = typer.Option(
        about.pop("name"), help=option.metadata["help"], min=option.metadata["least"], **about
    )
    return inspect.Parameter(
        option.name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=None if default == () else default,
        annotation=Annotated[_flag_type(option.type), flag],
    )


def _flag_type(annotation: Any) -> Any:
    """Choose one type for a flag: preferably a list, then a path, then text."""
    if get_origin(annotation) is not UnionType:
        return list[str] | None if get_origin(annotation) is Sequence else annotation
    kinds = get_args(annotation)
    if any(get_origin(kind) is Sequence for kind in kinds):
        return list[str] | None
    return next((kind | None for kind in (Path, str) if kind in kinds), annotation)


def check_stop(value: str) -> None:
    """Exit with code 2 if a stopping rule is unknown."""
    from heedful.search.stopping import stopping_rules

    rules = stopping_rules()
    if value not in rules:
        refuse("--stop", f"must be {' or '.join(rules)}, but is {value!r}.")


def check_runs(runs: Sequence[Path], command: str) -> None:
    """
    Exit with code 2 if the user gave text in place of run folders.

    `command`: name of the command, such as ``translate``.
    """
    from heedful.runs.foreign_models import recognize
    from heedful.runs.hub_names import hub_name

    for run in runs:
        text = str(run)
        if run.is_file() and recognize(run) is None:
            refuse(
                "RUN", f"must be a run folder, but {run} is a file; name a text file with --input."
            )
        is_missing = not run.exists() and hub_name(run) is None
        if is_missing and (" " in text or run != runs[0]):
            first = runs[0] if run != runs[0] else "RUN"
            sentence = " ".join(str(path) for path in runs if not path.exists())
            refuse(
                "RUN",
                f"must be a run folder, but {text!r} does not exist. Pass a sentence on stdin "
                f"(echo {shlex.quote(sentence)} | heedful {command} {shlex.quote(str(first))}) or "
                "in a file (--input FILE).",
            )


FromLanguage = Annotated[
    str,
    typer.Option(help="Source language of a multilingual model, such as de; by default the run's."),
]
ToLanguage = Annotated[
    str,
    typer.Option(help="Target language of a multilingual model, such as en; by default the run's."),
]


def choose_languages(
    translator: Any,
    from_language: str,
    to_language: str,
    target_language: str | None = None,
    *,
    has_tags: bool = False,
) -> tuple[Any, str]:
    """
    Return a translator for the named languages, and the tag to put before each source line.

    `target_language`: language of the tag. If the model has only tags or only language tokens,
    `to_language` and `target_language` have the same effect. `has_tags`: whether the command puts
    tags before lines.
    """
    tokenizer = translator.tokenizer
    if to_language and target_language is None and has_tags and tokenizer.tags:
        target_language, to_language = to_language, ""
    if target_language and tokenizer.languages:
        to_language, target_language = to_language or target_language, None
    tag = find_tag(target_language, tokenizer.tags)
    if not (from_language or to_language):
        return translator, tag
    if not hasattr(translator, "between"):
        refuse(
            "--to-language" if to_language else "--from-language",
            "needs a multilingual model and --engine torch, but the engine is ctranslate2.",
        )
    options = "--from-language", "--to-language"
    return translator.between(from_language, to_language, options), tag


def find_tag(target_language: str | None, tags: Sequence[str]) -> str:
    """
    Find the tag of a language; exit with code 2 if the model has no tag for it.

    `target_language`: language code in any form; None for no tag.
    """
    if target_language is None:
        return ""
    codes = {tag.removeprefix(">>").removesuffix("<<"): tag for tag in tags}
    code = look_up(target_language, list(codes))
    if code is None:
        near = in_another_script(target_language, list(codes))
        script = f"; {near} is written in another script" if near else ""
        refuse(
            "--target-language",
            f"must be a language for which this model has a tag ({', '.join(tags) or 'none'}), "
            f"but is {target_language or 'empty'}{script}.",
        )
    return codes[code]


def check_output(output: Path | None, read: Mapping[str, Path | None]) -> None:
    """Exit with code 2 if the output would overwrite an input file or cannot be written."""
    if output is None:
        return
    if output.is_dir():
        refuse("--output", f"must be a file, but {output} is a folder.")
    if not output.parent.is_dir():
        refuse("--output", f"must be in an existing folder, but {output.parent} does not exist.")
    if without_compression(output) != output:
        refuse(
            "--output",
            f"must not end in {output.suffix}, because heedful does not compress its output; "
            "leave the option out and compress stdout.",
        )
    for option, path in read.items():
        if output.exists() and path is not None and path.exists() and output.samefile(path):
            refuse("--output", f"must not be the same file as {option}; name another file.")


def warn(text: str) -> None:
    """Print a warning on standard error."""
    typer.echo(f"heedful: warning: {escape_controls(text)}", err=True)


def say(text: str) -> None:
    """Print progress on standard error."""
    typer.echo(escape_controls(text), err=True)
