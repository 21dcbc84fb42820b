"""Generated pages: every command with its options, and every setting."""

import inspect
import math
import re
import types
from typing import Any, Literal, Union, get_args, get_origin

import typer.main
from annotated_types import Ge, Gt, Le, Lt
from pydantic import AfterValidator
from pydantic.fields import FieldInfo

from heedful.cli.main import app
from heedful.config.schema import RunConfig, setting_conditions, setting_fields

_TYPES = {int: "whole number", float: "number", str: "text", bool: "true or false"}
_SIGNS = {Ge: ("≥", "ge"), Gt: (">", "gt"), Le: ("≤", "le"), Lt: ("<", "lt")}


def commands_page() -> str:
    """Write the page of all commands, with options, types and defaults."""
    lines = [
        "# Commands",
        "",
        "This page lists every command with its options, as `--help` prints them.",
        "",
    ]
    for name, command in _commands(typer.main.get_command(app), "heedful"):
        shown = [parameter for parameter in command.params if not parameter.hidden]
        words = [_argument(p) for p in shown if p.param_type_name == "argument"]
        lines += [f"## `{name}`", "", f"`{' '.join([name, '[OPTIONS]', *words])}`", ""]
        # Click marks paragraphs that keep their lines with \b
        help_text = inspect.cleandoc(command.help or "").replace("\b", "").strip()
        lines += [_plain(help_text), ""]
        rows = [
            (_names(p), _option_type(p), _option_default(p), _cell(p.help or "")) for p in shown
        ]
        lines += _table(("option", "type", "default", "meaning"), rows)
    return "\n".join(lines)


def settings_page() -> str:
    """Write the page of every setting: its type, range, default and meaning."""
    lines = [
        "# Settings",
        "",
        "This page lists every setting. Change one with `--set train.steps=200`, or in a TOML file "
        "that replaces the recipe; `heedful train RECIPE --print-config` prints such a file. The "
        "defaults are those of the paper's base model; a recipe changes some of them. A setting "
        "that has no effect in combination with the others is refused and not printed.",
        "",
    ]
    groups: dict[str, dict[str, FieldInfo]] = {}
    for name, field in setting_fields().items():
        groups.setdefault(name.rpartition(".")[0], {})[name] = field
    for table, fields in groups.items():
        title = f"`{table}`" if table else "The run"
        about = _description(table) if table else "Its recipe."
        lines += [f"## {title}", "", about or "", ""]
        rows = [
            (f"`{name}`", *_type_and_range(field.annotation, field.metadata),
             _value(field.default), _cell((field.description or "") + _condition(name)))
            for name, field in fields.items()
        ]  # fmt: skip
        lines += _table(("setting", "type", "range", "default", "meaning"), rows)
    return "\n".join(lines)


def _description(table: str) -> str | None:
    """Find the description of a table; a dot in its name precedes the name of an inner table."""
    settings: Any = RunConfig
    for name in table.split("."):
        field = settings.model_fields[name]
        settings = field.annotation
    return field.description


def _condition(name: str) -> str:
    """State the conditions under which a setting applies, if any."""
    conditions = [condition.describe() for condition in setting_conditions().get(name, ())]
    return f" Applies only if {' and '.join(conditions)}." if conditions else ""


def _commands(command: Any, name: str) -> list[tuple[str, Any]]:
    """List the commands; a group with options precedes its commands."""
    inner = getattr(command, "commands", None)
    if inner is None:
        return [(name, command)]
    own = [(name, command)] if command.params else []
    return own + [pair for key in inner for pair in _commands(inner[key], f"{name} {key}")]


def _argument(parameter: Any) -> str:
    """Write an argument as the help does."""
    name = (parameter.metavar or parameter.name).upper() + ("…" if parameter.nargs == -1 else "")
    return name if parameter.required else f"[{name}]"


def _names(parameter: Any) -> str:
    """Write all names of an option, or the name of an argument."""
    if parameter.param_type_name == "argument":
        return f"`{(parameter.metavar or parameter.name).upper()}`"
    return ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))


def _option_type(parameter: Any) -> str:
    """Describe the values of an option."""
    if getattr(parameter, "is_flag", False):
        return "switch"
    inner = [kind for kind in _parts(parameter.type_descriptor.annotation) if kind is not None]
    kind = inner[0]
    repeated = get_origin(kind) in (list, tuple)
    kind = get_args(kind)[0] if repeated else kind
    text = _kind(kind, "path" if "Path" in getattr(kind, "__name__", "") else "text")
    low, high = getattr(parameter, "min", None), getattr(parameter, "max", None)
    text += "".join(f", {sign} {end}" for sign, end in (("≥", low), ("≤", high)) if end is not None)
    return f"{text}; repeatable" if repeated and parameter.param_type_name == "option" else text


def _option_default(parameter: Any) -> str:
    """Write the default of an option."""
    if parameter.required:
        return "required"
    if getattr(parameter, "is_flag", False):
        return "on" if parameter.default is True else "off"
    return "–" if parameter.default in (None, "", (), []) else _value(parameter.default)


def _type_and_range(annotation: Any, metadata: list[Any]) -> tuple[str, str]:
    """Describe the type and bounds of a setting."""
    kinds, rules, optional = [], _rules(metadata), False
    for part in _parts(annotation):
        if part is None:
            optional = True
            continue
        bare, *more = get_args(part) if hasattr(part, "__metadata__") else (part,)
        for each in more:
            rules += _rules(each.metadata if isinstance(each, FieldInfo) else [each])
        kinds.append(_kind(bare, "text"))
    return " or ".join([*kinds, "none"] if optional else kinds), _cell("; ".join(rules)) or "–"


def _rules(metadata: list[Any]) -> list[str]:
    """Describe the bounds of a number, or the allowed form of a text."""
    rules = []
    for rule in metadata:
        if type(rule) in _SIGNS:
            sign, name = _SIGNS[type(rule)]
            bound = getattr(rule, name)
            power = math.log2(bound) if bound > 2**31 else 0.5
            rules.append(f"{sign} {f'2^{power:.0f}' if power.is_integer() else bound}")
        elif isinstance(rule, AfterValidator):
            closure = inspect.getclosurevars(inspect.unwrap(rule.func))
            if rule_text := closure.nonlocals.get("rule"):
                rules.append(rule_text.removeprefix("must be "))
    return rules


def _parts(annotation: Any) -> list[Any]:
    """List the types of a union, with None for NoneType."""
    if get_origin(annotation) in (Union, types.UnionType):
        return [None if part is type(None) else part for part in get_args(annotation)]
    return [annotation]


def _kind(kind: Any, other: str) -> str:
    """Describe a type in words, or list the values of a choice."""
    if get_origin(kind) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(kind))
    return _TYPES.get(kind, other)


def _value(value: Any) -> str:
    """Write a default as a user types it."""
    if value is None or isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`" if value != "" else "empty"


def _table(heading: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Write a table in Markdown."""
    lines = [heading, ("---",) * len(heading), *rows]
    return [*(f"| {' | '.join(line)} |" for line in lines), ""] if rows else []


def _cell(text: str) -> str:
    """Format a text for a cell of a table."""
    return _plain(" ".join(text.split())).replace("|", "\\|")


def _plain(text: str) -> str:
    """Escape markup."""
    return re.sub(r"([\\*_\[$]|<(?=[A-Za-z/!])|&(?=[#\w]+;))", r"\\\1", text)
