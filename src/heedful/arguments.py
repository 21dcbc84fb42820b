"""Types of Python arguments, checked before a function begins."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import fields
from functools import cache, wraps
from numbers import Integral, Real
from pathlib import Path
from reprlib import repr as shorten
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from heedful.errors import ArgumentError, SettingError, TextError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., Any])
_ONE = {
    NoneType: "None",
    Path: "a path",
    bool: "True or False",
    float: "a number",
    int: "a whole number",
    object: "anything",
    str: "a string",
}


WRITE_SENTENCES = (
    "write the sentences of each side to a file, one a line, and give its name: "
    'pathlib.Path("train.en").write_text("".join(f"{line}\\n" for line in sentences))'
)
"""What to do with sentences in memory where files are expected."""
_TEXT_ARGUMENTS = {"train": ("source", "target", "data", "exclude", "valid_source", "valid_target")}


def checked(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Refuse arguments whose types differ from the annotations, in a sentence that names them."""
    find_signature = cache(lambda: inspect.signature(function))
    owner = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def call(*args: Parameters.args, **keywords: Parameters.kwargs) -> Result:
        signature = find_signature()
        try:
            given = signature.bind(*args, **keywords).arguments
        except TypeError:
            return function(*args, **keywords)  # Python's own message is better
        for name, value in given.items():
            parameter = signature.parameters[name]
            several = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            if not several and parameter.annotation is not parameter.empty:
                check_argument(owner, name, value, parameter.annotation)
        return function(*args, **keywords)

    return call


def with_fields_of(kind: type[Any]) -> Callable[[Function], Function]:
    """Show the fields of a dataclass in `help` and completion in place of a function's keywords."""

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        *named, _ = signature.parameters.values()  # the last are its keywords
        shown = [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=field.type,
            )
            for field in fields(kind)
        ]
        signature = signature.replace(parameters=[*named, *shown])
        function.__signature__ = signature  # type: ignore[attr-defined]
        return function

    return decorate


def check_fields(instance: Any) -> None:
    """Refuse fields of a dataclass whose types differ from the annotations."""
    for field in fields(instance):
        check_argument(
            type(instance).__name__, field.name, getattr(instance, field.name), field.type
        )


def read_texts(name: str, texts: str | Iterable[str]) -> list[str]:
    """List the given lines, one for a single string; refuse an entry that is not text."""
    lines = [texts] if isinstance(texts, str) else list(texts)
    for number, line in enumerate(lines):
        if not isinstance(line, str):
            raise ArgumentError(
                f"`{name}` must be a string or a list of strings, but its entry {number} is "
                f"{shorten(line)}."
            )
        try:
            line.encode()
        except UnicodeEncodeError as error:
            raise TextError(
                f"`{name}` must be text, but entry {number} has half of a surrogate pair at place "
                f"{error.start}; it was decoded wrongly."
            ) from None
    return lines


def read_pairs(
    sources: str | Iterable[str], targets: str | Iterable[str]
) -> tuple[list[str], list[str]]:
    """List the lines of both sides; refuse sides of different lengths."""
    if isinstance(sources, str) != isinstance(targets, str):
        raise ArgumentError(
            "`sources` and `targets` must both be one string or both be lists, but one of them is "
            "a string."
        )
    pairs = read_texts("sources", sources), read_texts("targets", targets)
    if len(pairs[0]) != len(pairs[1]):
        raise TextError(
            "`sources` and `targets` must have one entry for each pair, but there are "
            f"{len(pairs[0]):,} sources and {len(pairs[1]):,} targets."
        )
    return pairs


def check_counts(**counts: int | None) -> None:
    """Refuse numbers below 1; each keyword is the name of an argument."""
    for name, value in counts.items():
        if value is not None and value < 1:
            raise SettingError(f"`{name}` must be at least 1, but is {value}.")


def check_argument(owner: str, name: str, value: object, annotation: Any) -> None:
    """Refuse one value of a wrong type."""
    if Path in get_args(annotation) and "\0" in str(value):
        raise ArgumentError(f"`{name}` of {owner} must be a path, but {shorten(value)} has a NUL.")
    if not _fits(value, annotation):
        advice = f"; {WRITE_SENTENCES}" if name in _TEXT_ARGUMENTS.get(owner, ()) else ""
        raise ArgumentError(
            f"`{name}` of {owner} must be {_words(annotation)}, but "
            f"{_what_came(value, annotation)}{advice}."
        )


def _fits(value: Any, annotation: Any) -> bool:
    """Whether a value has an annotated type."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        fits = any(_fits(value, option) for option in inner)
    elif origin is Literal:
        fits = value in inner
    elif origin is Iterable:  # checked on reading: only once possible
        fits = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping | Set)
    elif origin in (Sequence, list, tuple):
        fits = _is_list(value) and all(_fits(entry, inner[0]) for entry in value)
    elif origin is Mapping:
        fits = isinstance(value, Mapping) and all(
            _fits(key, inner[0]) and _fits(entry, inner[1]) for key, entry in value.items()
        )
    elif origin is Callable:
        fits = callable(value)
    elif annotation in (int, float):
        number = Integral if annotation is int else Real
        fits = isinstance(value, number) and not isinstance(value, bool)
    else:
        named = isinstance(annotation, type) and annotation is not Any
        fits = not named or isinstance(value, annotation)
    return fits


def _is_list(value: object) -> bool:
    """Whether a value is list-like and not text."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _what_came(value: object, annotation: Any) -> str:
    """Show a value, or the first wrong entry of a list."""
    options = (
        get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    )
    entries = [get_args(one)[0] for one in options if get_origin(one) in (Sequence, list, tuple)]
    if entries and isinstance(value, Sequence) and _is_list(value):
        for number, entry in enumerate(value):
            if not any(_fits(entry, kind) for kind in entries):
                return f"its entry {number} is {shorten(entry)}"
    return f"{' '.join(shorten(value).split())} came"


def _words(annotation: Any) -> str:
    """Describe a type for people: a list of strings or None."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_words, inner)))
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if origin in (Iterable, Sequence, list, tuple):
        return f"a list of {_plural(inner[0])}"
    if origin is Mapping:
        return f"a dict of {_plural(inner[0])} to {_plural(inner[1])}"
    if origin is Callable:
        return "a function"
    return _ONE.get(annotation) or f"a {getattr(annotation, '__name__', annotation)}"


def _plural(annotation: Any) -> str:
    """Describe several of a type."""
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(map(_plural, get_args(annotation)))
    if annotation is object:
        return "anything"
    first, *others = _words(annotation).removeprefix("a ").split(" ")
    if annotation in (int,):
        return "whole numbers"
    return " ".join([f"{first}s", *others])
