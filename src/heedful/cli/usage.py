"""One-sentence messages for usage errors: the requirement, the value given, and the remedy."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import chain
from typing import Any

from typer.exceptions import TyperException

from heedful.settings.foreign_names import OPTIONS

_ALIKE = 0.75
_SHORTEST = len("--beam")  # shortest name that is compared with the start of a longer name
_TOO_MANY = r"the command takes no more arguments, but got: \1"
_MISSING = ("got none", "got only one")


def explain_usage(error: TyperException, command: Any, arguments: Sequence[str]) -> str:
    """
    Return the message about an invalid call of the program, whose top-level command is `command`.

    typer's error classes are private, so errors are distinguished by their attributes.
    """
    path, command = _find_command(command, arguments)
    if hasattr(error, "possibilities"):
        text = _explain_unknown(error, path, command, arguments)
    elif hasattr(error, "option_name"):
        text = _explain_use(error, command)
    elif hasattr(error, "param_type"):
        text = _explain_missing(error, command)
    elif hasattr(error, "param_hint"):
        text = _explain_value(error)
    else:
        text = re.sub(
            r"Got unexpected extra argument\S* \((.*)\)", _TOO_MANY, error.format_message()
        )
    text = " ".join(text.split()).rstrip(".")
    listed = "commands" if hasattr(command, "commands") else "options"
    help_command = f"`{' '.join(('heedful', *path))} --help` lists the {listed}."
    return f"{text} {help_command}" if text.endswith("?") else f"{text}; {help_command}"


def _find_command(command: Any, arguments: Sequence[str]) -> tuple[tuple[str, ...], Any]:
    """Follow the arguments to the subcommand that they name."""
    path: tuple[str, ...] = ()
    for word in arguments:
        below = getattr(command, "commands", {}).get(word)
        if below is None:
            break
        path, command = (*path, word), below
    return path, command


def _explain_unknown(
    error: Any, path: tuple[str, ...], command: Any, arguments: Sequence[str]
) -> str:
    """Suggest the intended option for a misspelled name or a name from another toolkit."""
    place, name = " ".join(path), str(error.option_name)
    if len(name) == 2:  # typer reads -src as -s, -r and -c
        words = (word.partition("=")[0] for word in arguments if word.startswith(name))
        name = next(words, name)
    bare = name.lstrip("-").lower().replace("_", "-")
    places = [(p.name, p.metavar) for p in command.params if p.param_type_name == "argument"]
    options = (p.opts for p in command.params if p.param_type_name == "option")
    known = list(chain.from_iterable(options))
    ours = OPTIONS.get(place, {}).get(bare, ())
    if not ours and "--set" in known:
        ours = tuple(_setting_arguments(bare))
    ours = ours or tuple({place for field, place in places if bare in (field, place.lower())})
    ours = ours or tuple(option for option in known if _is_alike(name, option))
    shown = name if name.isprintable() else ascii(name)
    if not ours:
        return f"No such option: {shown}"
    example = ""
    if any(word.isupper() for word in ours):
        call = " ".join(("heedful", *path, *(place for _, place in places)))
        example = f", as in `{call}`"
    return f"No such option: {shown}; use {_join(ours)}{example}"


def _join(names: Sequence[str]) -> str:
    """Join names of options and arguments."""
    return " or ".join(f"the argument {name}" if name.isupper() else name for name in names)


def _setting_arguments(name: str) -> Iterator[str]:
    """Yield arguments for the settings that have this name here or in another toolkit."""
    from heedful.config.schema import RunConfig
    from heedful.settings.explain import known_elsewhere
    from heedful.settings.table import walk

    known = [setting for setting, _, _ in walk(RunConfig)]
    suffix = f".{name.replace('-', '_')}"
    exact = [known_name for known_name in known if known_name.endswith(suffix)]
    exact = [setting for setting in exact if setting.count(".") == 1]  # no settings of subtables
    for setting in known_elsewhere(name, known) or exact:
        yield f"--set {setting}" + ("" if "=" in setting else "=VALUE")


def _is_alike(name: str, option: str) -> bool:
    """Return whether two names are similar, or one begins with the other."""
    short, long = sorted((name, option), key=len)
    begins = len(short) >= _SHORTEST and long.startswith(short)
    return begins or SequenceMatcher(None, name, option).ratio() >= _ALIKE


def _explain_use(error: Any, command: Any) -> str:
    """Say whether an option needs a value or takes none."""
    name = error.option_name
    option = next((option for option in command.params if name in option.opts), None)
    if option is None or getattr(option, "is_flag", False):
        return f"{name} takes no value"
    value = "a value" if option.metavar is None else option.metavar
    return f"{name} needs {value}: {_help(option)}"


def _explain_missing(error: Any, command: Any) -> str:
    """Say which parameter is missing, and describe it."""
    parameter = error.param
    if parameter.param_type_name != "argument":
        return f"{parameter.opts[-1]} is needed: {_help(parameter)}"
    name = parameter.metavar or parameter.name.upper()
    alike = [sibling for sibling in command.params if getattr(sibling, "metavar", None) == name]
    if len(alike) == 2:
        return f"two {name.lower()}s are needed, but {_MISSING[alike.index(parameter)]}"
    return f"{name} is needed: {_help(parameter)}"


def _variable(error: Any) -> str:
    """Return the environment variable that the wrong value comes from; empty if there is none."""
    parameter, context = error.param, error.ctx
    if parameter is None or context is None:
        return ""
    source = context.get_parameter_source(parameter.name)
    if source is None or source.name != "ENVIRONMENT":
        return ""
    return parameter.envvar or f"{context.auto_envvar_prefix}_{parameter.name.upper()}"


def _explain_value(error: Any) -> str:
    """Name the required and the given value; our own messages already have this form."""
    from pydantic import ValidationError

    name, parameter = error.param_hint, error.param
    if name is None and parameter is not None:
        is_argument = parameter.param_type_name == "argument"
        name = parameter.metavar if is_argument else parameter.opts[-1]
    name = _variable(error) or name
    if not isinstance(error.__cause__, ValidationError):
        return f"{name} {error.message}"
    from heedful.settings.explain import describe_rule

    details = error.__cause__.errors(include_url=False)[0]
    text = str(details["input"])
    return f"{name} {describe_rule(details)}, but got {text if _is_number(text) else repr(text)}"


def _is_number(text: str) -> bool:
    """Return whether a value is written as a number, and so needs no quotes."""
    return re.fullmatch(r"[+-]?[0-9][0-9.,]*", text) is not None


def _help(parameter: Any) -> str:
    """Return the first sentence of a parameter's help as a clause."""
    text: str = parameter.help.partition(". ")[0].rstrip(".")
    return text[0].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text
