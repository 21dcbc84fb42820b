"""Type checks of Python arguments before a function runs."""

import ast
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import MISSING, Field, field, fields
from functools import cache, wraps
from itertools import pairwise
from numbers import Integral, Rational, Real
from os import PathLike
from pathlib import Path
from reprlib import repr as shorten
from textwrap import dedent, indent
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from heedful.errors import ArgumentError, SettingError, TextError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., Any])
Files = str | Path | Sequence[str | Path]
"""A file or a pattern, or several of them."""
Pairs = Iterable[Sequence[str] | Mapping[str, object]]
"""Pairs of sentences, each a sequence or dict; tables are accepted, too (`heedful.text.pairs`)."""
Settings = Sequence[str] | Mapping[str, object]
"""``key=value`` strings, or a mapping of names to values, nested or with dotted names."""
# No tensor can hold larger whole numbers; huge ones cannot even be converted to a float or to text.
_LARGEST = 2**64 - 1
_ONE = {
    Callable: "a function",
    NoneType: "None",
    Path: "a path",
    PathLike: "a path",
    bool: "True or False",
    float: "a number",
    int: "a whole number",
    object: "anything",
    str: "a string",
}


WRITE_SENTENCES = "write the sentences to a file, one per line, and give its name"
"""Advice for users who pass sentences where files are expected."""
GIVE_PAIRS = f"{WRITE_SENTENCES}, or give pairs=zip(sources, targets)"
"""Advice for users who pass sentences as files of training text."""
PAIR_FORMS = (
    "give [(source, target), …], zip(sources, targets), a table with two columns or one split of a "
    "dataset"
)
"""Advice on the form of pairs."""


def flag(
    text: str,
    default: Any = None,
    *,
    least: int | float | None = None,
    most: int | None = None,
    advice: str = "",
    **option: Any,
) -> Any:
    """
    Declare a dataclass field that is also a command-line flag.

    `text`: the flag's help. `least`, `most`: the range of its value. `advice`: the remedy for a
    value of a wrong type. `option`: the flag's `name`, if it differs from the field's, and
    arguments of `typer.Option`.
    """
    about = {"help": text, "least": least, "most": most, "advice": advice, "option": option}
    return field(default=default, metadata=about)


def checked(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Wrap a function so that it refuses arguments whose types differ from the annotations."""
    find_signature = cache(lambda: inspect.signature(function))
    owner = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def call(*args: Parameters.args, **keywords: Parameters.kwargs) -> Result:
        signature = find_signature()
        try:
            bound = signature.bind(*args, **keywords).arguments
        except TypeError:
            return function(*args, **keywords)  # Python's own message is better
        for name, value in bound.items():
            parameter = signature.parameters[name]
            several = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            if not several and parameter.annotation is not parameter.empty:
                check_argument(owner, name, value, parameter.annotation)
        return function(*args, **keywords)

    return call


def with_fields_of(*kinds: type[Any]) -> Callable[[Function], Function]:
    """Show the fields of dataclasses in `help` and completion, in place of the `**` parameter."""

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        *named, _ = signature.parameters.values()  # the last parameter collects keywords
        shown = {
            option: text
            for kind in kinds
            for option, text in _described_fields(kind)
            if option.name not in signature.parameters
        }
        keywords = [
            inspect.Parameter(
                option.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=option.default,
                annotation=option.type,
            )
            for option in shown
        ]
        signature = signature.replace(parameters=[*named, *keywords])
        function.__signature__ = signature  # type: ignore[attr-defined]
        if function.__doc__:  # python -OO removes docstrings
            before, returns, after = inspect.cleandoc(function.__doc__).partition("\n\nReturns\n")
            entries = [_entry(option, text) for option, text in shown.items()]
            function.__doc__ = "\n".join([before, *entries]) + returns + after
        return function

    return decorate


def _described_fields(kind: type[Any]) -> list[tuple["Field[Any]", str]]:
    """List the fields of a dataclass, each with the docstring below it."""
    texts: dict[str, str] = {}
    for base in kind.__mro__[:-1]:
        try:
            source = inspect.getsource(base)
        except OSError:  # the program was installed without its source
            continue
        definition = ast.parse(dedent(source)).body[0]
        for statement, below in pairwise(getattr(definition, "body", ())):
            if isinstance(statement, ast.AnnAssign) and isinstance(below, ast.Expr):
                text = inspect.cleandoc(ast.literal_eval(below.value))
                texts.setdefault(ast.unparse(statement.target), text)
    return [(option, texts.get(option.name, "")) for option in fields(kind)]


def _entry(option: "Field[Any]", text: str) -> str:
    """Write the entry of a field for the Parameters section of a docstring."""
    words = _words(option.type).removesuffix(" or None")
    default = option.default
    optional = default is MISSING or default is None or default == ()
    default_text = "optional" if optional else f"default {default!r}"
    return f"{option.name} : {words}, {default_text}\n{indent(text, '    ')}"


def check_fields(instance: Any) -> None:
    """Refuse a dataclass instance whose fields differ in type from the annotations."""
    values = {option.name: getattr(instance, option.name) for option in fields(instance)}
    check_keywords(type(instance).__name__, values, type(instance))


def check_keywords(owner: str, keywords: Mapping[str, Any], *kinds: type[Any]) -> None:
    """Refuse keywords that are not fields of the dataclasses, and values of wrong types."""
    known = {option.name: option for kind in kinds for option in fields(kind)}
    for name, value in keywords.items():
        if name not in known:
            raise TypeError(f"{owner}() got an unexpected keyword argument {name!r}")
        option = known[name]
        check_argument(owner, name, value, option.type, option.metadata.get("advice", ""))


def read_texts(name: str, texts: str | Iterable[str]) -> list[str]:
    """Return a string or an iterable of strings as a list; refuse an entry that is not text."""
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
                f"`{name}` must be text, but entry {number} has an unpaired surrogate at "
                f"position {error.start}; decode the bytes of the text again, without "
                "surrogateescape, or remove the surrogate."
            ) from None
    return lines


def read_pairs(
    sources: str | Iterable[str], targets: str | Iterable[str]
) -> tuple[list[str], list[str]]:
    """Return the lines of both sides; refuse sides of different lengths."""
    if isinstance(sources, str) != isinstance(targets, str):
        raise ArgumentError(
            "`sources` and `targets` must both be strings or both be lists, but only one of them "
            "is a string."
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


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    """Refuse a value that is not one of the choices."""
    if value not in choices:
        raise SettingError(f"`{name}` must be {' or '.join(choices)}, but is {value!r}.")


def check_special_ids(size: int, **ids: int) -> None:
    """Refuse special ids outside a vocabulary of `size` ids."""
    if min(ids.values()) < 0 or max(ids.values()) >= size:
        raise SettingError(
            f"`vocabulary` must hold the special ids {', '.join(map(str, ids.values()))} "
            f"({', '.join(f'`{name}`' for name in ids)}), but has only {size:,} ids, numbered "
            "from 0."
        )


def check_tying(tied: str, source: int, target: int) -> None:
    """Refuse to share a matrix between vocabularies of different sizes."""
    if tied in ("all", "embeddings") and source != target:
        raise SettingError(
            f"`tie_embeddings` can be {tied!r} only for a shared vocabulary, but there are "
            f"{source:,} source ids and {target:,} target ids; choose 'output' or 'none'."
        )


def both_sides(name: str, sizes: int | Sequence[int]) -> tuple[int, int]:
    """Return a pair for source and target from one or two numbers above 0; refuse other values."""
    pair = tuple(sizes) if isinstance(sizes, Sequence) else (sizes, sizes)
    if len(pair) != 2:
        raise SettingError(
            f"`{name}` must be a number or a pair of numbers, but got {shorten(sizes)}."
        )
    both = int(pair[0]), int(pair[1])
    for size in both:
        check_counts(**{name: size})
    return both


def check_argument(owner: str, name: str, value: object, annotation: Any, advice: str = "") -> None:
    """Refuse one value of a wrong type. `advice`: what to do instead."""
    # values of simple types need no further check; skip it, because it runs for each translated
    # line
    if type(value) in _simple_types(annotation):
        return
    if _takes_path(annotation) and "\0" in str(value):
        raise ArgumentError(
            f"`{name}` of {owner} must be a path, but {shorten(value)} contains a NUL character."
        )
    if not _fits(value, annotation):
        raise ArgumentError(
            f"`{name}` of {owner} must be {_words(annotation)}, but "
            f"{_what_is_wrong(value, annotation)}{advice and f'; {advice}'}."
        )
    if isinstance(value, Integral) and abs(int(value)) > _LARGEST:
        raise ArgumentError(
            f"`{name}` of {owner} must be a number below 2**64 in absolute value, but got a "
            f"number of {int(value).bit_length():,} bits."
        )


@cache
def _simple_types(annotation: Any) -> frozenset[type]:
    """Return the types whose values need no further check; the size of numbers must be checked."""
    options = get_args(annotation) if _is_union(annotation) else (annotation,)
    simple = (NoneType, bool) if _takes_path(annotation) else (NoneType, bool, str)
    return frozenset(simple).intersection(options)


def _takes_path(annotation: Any) -> bool:
    """Return whether a path is among the types of an annotation."""
    return any(option in (Path, PathLike[str]) for option in get_args(annotation))


def _is_union(annotation: Any) -> bool:
    """Return whether an annotation is a union of types."""
    return get_origin(annotation) in (Union, UnionType)


def _fits(value: Any, annotation: Any) -> bool:
    """Return whether a value fits an annotation."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        fits = any(_fits(value, option) for option in inner)
    elif origin is Literal:
        fits = value in inner
    elif origin is Iterable:  # entries can be read only once, so they are checked when read
        fits = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping | Set)
    elif origin in (Sequence, list, tuple):
        fits = _is_list(value) and all(_fits(entry, inner[0]) for entry in value)
    elif origin is Mapping:
        fits = isinstance(value, Mapping) and all(
            _fits(key, inner[0]) and _fits(entry, inner[1]) for key, entry in value.items()
        )
    elif origin is Callable:
        fits = callable(value)
    elif origin is PathLike:
        fits = isinstance(value, PathLike)
    elif annotation in (int, float):
        # a fraction is a Real, but torch cannot compute with it
        is_fraction = isinstance(value, Rational) and not isinstance(value, Integral)
        number = Integral if annotation is int else Real
        fits = isinstance(value, number) and not isinstance(value, bool) and not is_fraction
    else:
        named = isinstance(annotation, type) and annotation is not Any
        fits = not named or isinstance(value, annotation)
    return fits


def _is_list(value: object) -> bool:
    """Return whether a value is list-like and not text."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _what_is_wrong(value: object, annotation: Any) -> str:
    """Describe a wrong value, or the first wrong entry of a list."""
    options = get_args(annotation) if _is_union(annotation) else (annotation,)
    entries = [get_args(kind)[0] for kind in options if get_origin(kind) in (Sequence, list, tuple)]
    if entries and isinstance(value, Sequence) and _is_list(value):
        for number, entry in enumerate(value):
            if not any(_fits(entry, kind) for kind in entries):
                return f"its entry {number} is {shorten(entry)}"
    return f"got {' '.join(shorten(value).split())}"


def _words(annotation: Any) -> str:
    """Describe a type in words, such as “a list of strings or None”."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_words, inner)))
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if origin in (Iterable, Sequence, list, tuple):
        return f"a list of {_plural(inner[0])}"
    if origin is Mapping:
        return f"a dict of {_plural(inner[0])} to {_plural(inner[1])}"
    return (
        _ONE.get(origin)
        or _ONE.get(annotation)
        or f"a {getattr(annotation, '__name__', annotation)}"
    )


def _plural(annotation: Any) -> str:
    """Describe a type in the plural."""
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(map(_plural, get_args(annotation)))
    if annotation is object:
        return "anything"
    first, *others = _words(annotation).removeprefix("a ").split(" ")
    if annotation in (int,):
        return "whole numbers"
    return " ".join([f"{first}s", *others])
