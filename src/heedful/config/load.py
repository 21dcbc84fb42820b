"""
A recipe or a TOML file, and ``key=value`` changes, to checked settings; and back to TOML.

A settings file has the tables ``model``, ``data``, ``train`` and ``search``. ``base = "small"``
above them names the recipe it starts from; without it, what is not set takes its default. TOML
has no null: ``"none"`` stands for it where a setting may be none.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from os.path import exists
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from heedful.arguments import checked
from heedful.config.recipes import RECIPES, recipe
from heedful.config.schema import RunConfig, setting_fields
from heedful.errors import SettingError

# Changes to settings, as text or as values.
Settings = Sequence[str] | Mapping[str, object]


@checked
def load_config(
    recipe_or_path: str,
    settings: Settings = (),
    inherited: Mapping[str, Any] | None = None,
) -> RunConfig:
    """
    Make checked settings of a recipe or a TOML file, and of changes to it.

    Parameters
    ----------
    recipe_or_path : str
        Name of a built-in recipe, or path of a TOML file.
    settings : sequence of str or mapping, optional
        Changes such as ``train.steps=200``; a later one wins over an earlier one. ``none``
        clears a setting that may be none. See `setting_list` for mappings.
    inherited : mapping of str to Any, optional
        Settings by dotted name that win over the recipe but not over `settings`: those of the run
        that training goes on from.

    Returns
    -------
    RunConfig
        The settings.

    Raises
    ------
    SettingError
        If there is no such recipe or file, if the file is not TOML, or if a setting is unknown
        or out of range.

    Notes
    -----
    A built-in name wins over a file of the same name; ``./small`` is the file. The file and the
    changes are checked one after the other, so each message can say where the fault lies.

    Examples
    --------
    >>> load_config("small", ["train.steps=200", "train.clip_norm=1"]).train.steps
    200
    """
    config = _read(Path(recipe_or_path)) if _is_path(recipe_or_path) else recipe(recipe_or_path)
    changes = dict(_key_and_value(text) for text in setting_list(settings))
    return config.with_settings({**(inherited or {}), **changes})


def setting_list(settings: Settings) -> list[str]:
    """List settings as ``key=value``, of ``{"train.steps": 5}`` and ``{"train": {"steps": 5}}``."""
    if not isinstance(settings, Mapping):
        return list(settings)
    listed = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            listed += [f"{name}.{setting}" for setting in setting_list(value)]
        else:
            listed.append(f"{name}={_written(value)}")
    return listed


def to_toml(config: RunConfig) -> str:
    """
    Write all settings as a TOML file, each below its help text.

    Parameters
    ----------
    config : RunConfig
        The settings.

    Returns
    -------
    str
        Text of a file that `load_config` reads back to equal settings.

    Notes
    -----
    Every setting is written, the defaults too, so that the file means the same in a later
    version.
    """
    values = config.to_dict()
    lines = []
    here = ""
    for name, field in setting_fields().items():
        table, _, key = name.rpartition(".")
        if table != here:
            lines += [f"[{table}]", ""]
            here = table
        value = values[table][key] if table else values[key]
        lines += [f"# {field.description}", f"{key} = {_toml_value(value)}", ""]
    return "\n".join(lines)


def _written(value: object) -> str:
    """Write a value as the command line takes it."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _is_path(text: str) -> bool:
    """Tell whether a file is meant and not a recipe."""
    return text not in RECIPES and (text.endswith(".toml") or exists(text))


def _read(path: Path) -> RunConfig:
    """Read a settings file on top of the recipe it names."""
    tables = _parse(path)
    base = tables.pop("base", None)
    try:
        values = {} if base is None else recipe(str(base)).to_dict()
        for name, value in tables.items():
            if isinstance(value, dict):
                given = {key: _or_none(f"{name}.{key}", inner) for key, inner in value.items()}
                inherited = values.get(name)
                values[name] = {**inherited, **given} if isinstance(inherited, dict) else given
            else:
                values[name] = value
        return RunConfig.from_dict(values)
    except SettingError as error:
        raise SettingError(f"{path}: {error}") from None


def _parse(path: Path) -> dict[str, Any]:
    """Parse a TOML file, or say what is wrong with it and where."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{path} must be a TOML file, but it cannot be read: {error}.") from None
    except UnicodeDecodeError as error:
        raise SettingError(
            f"{path} must be a TOML file in UTF-8, but byte {error.start} is not; save it as UTF-8."
        ) from None
    except OSError as error:
        raise SettingError(
            f"a recipe must be a built-in name or a TOML file that can be read, but {path} cannot: "
            f"{error.strerror}; `heedful train --help` lists the built-in ones."
        ) from None


def _key_and_value(text: str) -> tuple[str, object]:
    """Take ``key=value`` apart and read the value as the type of its setting."""
    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not key:
        raise SettingError(
            f"a setting must be key=value, such as train.steps=200, but {text!r} came."
        )
    return key, _value(key, value)


def _value(name: str, text: str) -> object:
    """Read text as the type of a setting; what does not fit is left for the schema to refuse."""
    types = _types(name)
    if text.lower() in ("true", "false") and bool in types:
        return text.lower() == "true"
    for number in (int, float):
        if number in types:
            try:
                return number(text)
            except ValueError:
                pass
    return _or_none(name, text)


def _or_none(name: str, value: object) -> object:
    """Replace ``none`` by None where a setting may be none."""
    none = isinstance(value, str) and value.lower() == "none"
    return None if none and NoneType in _types(name) else value


def _types(name: str) -> set[Any]:
    """List the types that a setting may have; none for a setting that is not known."""
    field = setting_fields().get(name)
    return _plain(field.annotation) if field else set()


def _plain(annotation: Any) -> set[Any]:
    """List the types of an annotation without their ranges."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        return {kind for part in get_args(annotation) for kind in _plain(part)}
    return _plain(get_args(annotation)[0]) if origin is Annotated else {annotation}


def _toml_value(value: object) -> str:
    """Write one value; text holds no characters that TOML and JSON write differently."""
    return json.dumps("none" if value is None else value, ensure_ascii=False)
