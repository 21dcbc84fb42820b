"""
Read settings from a recipe or a TOML file, apply ``key=value`` changes, and write TOML.

A settings file has the tables ``model``, ``data``, ``train`` and ``search``, and one for each task.
``base = "small"`` above them names the recipe to start from; without a base, unset settings have
their defaults. ``plugins = ["mine.py"]`` names plugins (`heedful.plugins`) that are loaded first,
with paths relative to the folder of the settings file. TOML has no null, so ``"none"`` means null
for settings that may be null.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from os.path import exists
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from heedful.arguments import Settings, checked
from heedful.config.recipes import RECIPES, recipe
from heedful.config.schema import RunConfig, acting_settings, setting_fields, without_idle
from heedful.errors import SettingError
from heedful.files import read_text_within
from heedful.plugins import load_plugins, plugins_of
from heedful.settings.conditions import flat, format_value
from heedful.tasks.task import Task


@checked
def load_config(
    recipe_or_path: str,
    settings: Settings = (),
    inherited: Mapping[str, Any] | None = None,
) -> RunConfig:
    """
    Load checked settings from a recipe or a TOML file, with changes.

    From low to high precedence: defaults, the recipe that a file names as its base, the file,
    `inherited` (a pretrained run's settings, when fine-tuning), `settings`.

    A built-in name takes precedence over a file of the same name; ``./small`` is the file. File and
    changes are checked separately, so each message can name the source of the error.

    Raises `SettingError` if the recipe or file does not exist, is not TOML, or has an unknown or
    invalid setting.

    >>> load_config("small", ["train.steps=200", "train.clip_norm=1"]).train.steps
    200
    """
    config = _read(Path(recipe_or_path)) if _is_path(recipe_or_path) else recipe(recipe_or_path)
    changes = dict(_key_and_value(text) for text in setting_list(settings))
    return config.with_settings(changes, inherited)


def load_task_config(
    task: Task,
    recipe_or_path: str,
    settings: Settings = (),
    inherited: Mapping[str, Any] | None = None,
) -> RunConfig:
    """
    Load settings like `load_config`; a recipe of another task is adapted to this task.

    The task's free settings keep the values that a file itself sets. A list of all settings of
    another task, as --print-config writes it, is adapted like a recipe.
    """
    changes = task.changes
    if changes and task.acts(flat(load_config(recipe_or_path).to_dict())):
        changes = {}
    if changes and task.settings and _is_path(recipe_or_path):
        tables = _parse(Path(recipe_or_path))
        if not tables.get(task.settings.table):  # the list of another task has this table, too
            free = {*task.free_changes} & flat(tables).keys()
            changes = {name: value for name, value in changes.items() if name not in free}
    return load_config(recipe_or_path, settings, {**changes, **(inherited or {})})


def setting_list(settings: Settings) -> list[str]:
    """
    List settings as ``key=value``; a mapping may be nested or have dotted keys.

    So one parser reads settings from Python and from the command line, with the same errors.
    """
    if not isinstance(settings, Mapping):
        return list(settings)
    listed = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            listed += [f"{name}.{setting}" for setting in setting_list(value)]
        else:
            listed.append(f"{name}={format_value(value)}")
    return listed


def to_toml(config: RunConfig) -> str:
    """
    Write as TOML all settings that have an effect, each below its help text.

    Defaults are included, so the text has the same meaning in a later version.
    """
    values, acting = flat(config.to_dict()), acting_settings(config)
    lines = []
    if plugins := plugins_of(config.model, values):
        lines += [f"plugins = {_toml_value([str(plugin.path) for plugin in plugins])}", ""]
    here = ""
    for name, field in setting_fields().items():
        if name not in acting:
            continue
        table, _, key = name.rpartition(".")
        if table != here:
            lines += [f"[{table}]", ""]
            here = table
        lines += [f"# {field.description}", f"{key} = {_toml_value(values[name])}", ""]
    return "\n".join(lines)


def _is_path(text: str) -> bool:
    """Return whether a name refers to a file instead of a recipe."""
    return text not in RECIPES and (text.endswith(".toml") or exists(text))


def _read(path: Path) -> RunConfig:
    """Read a settings file and the recipe that it starts from."""
    tables = _parse(path)
    base = tables.pop("base", None)
    load_plugins(_named_plugins(path, tables.pop("plugins", [])))
    try:
        values = {} if base is None else recipe(str(base)).to_dict()
        for name, value in tables.items():
            values[name] = _override(values.get(name), name, value)
        config = RunConfig.from_dict(without_idle(values, explicit=flat(tables)))
        if base is None:
            _check_label(config, settings=len(flat(tables)))
        return config
    except SettingError as error:
        raise SettingError(f"{path}: {error}") from None


def _check_label(config: RunConfig, settings: int) -> None:
    """Refuse a file with `recipe` and few other settings; only `base` starts from a recipe."""
    # `heedful train --print-config` writes the name next to all settings.
    if config.recipe in RECIPES and 2 * settings < len(acting_settings(config)):
        raise SettingError(
            f'`recipe = "{config.recipe}"` only names the recipe of a complete list of settings; '
            f'write `base = "{config.recipe}"` instead to start from this recipe.'
        )


def _named_plugins(path: Path, names: object) -> list[Path]:
    """Return the paths of the plugins that a settings file names, relative to its folder."""
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise SettingError(
            f'{path}: `plugins` must be a list of files, such as ["mine.py"], but got {names!r}.'
        )
    return [path.parent / name for name in names]


def _override(below: object, name: str, above: object) -> object:
    """Return the setting or table `below`, overridden by `above` from a file."""
    if not isinstance(above, dict):
        return _or_none(name, above)
    known = below if isinstance(below, dict) else {}
    inner = {key: _override(known.get(key), f"{name}.{key}", value) for key, value in above.items()}
    return {**known, **inner}


def _parse(path: Path) -> dict[str, Any]:
    """Parse a TOML file, or report the error and its position."""
    try:
        return tomllib.loads(read_text_within(path))
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{path} must be a TOML file, but it cannot be read: {error}.") from None
    except UnicodeDecodeError as error:
        raise SettingError(
            f"{path} must be a TOML file in UTF-8, but the byte at offset {error.start:,} is "
            "invalid; save the file as UTF-8."
        ) from None
    except OSError as error:
        raise SettingError(
            f"a recipe must be a built-in name or a readable TOML file, but {path} cannot be read: "
            f"{error.strerror}; `heedful train --recipes` lists the built-in recipes."
        ) from None


def _key_and_value(text: str) -> tuple[str, object]:
    """Split ``key=value`` and parse the value by the type of its setting."""
    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not key:
        raise SettingError(
            f"a setting must be key=value, such as train.steps=200, but got {text!r}."
        )
    return key, _value(key, value)


def _value(name: str, text: str) -> object:
    """Parse text according to the type of a setting; the schema refuses wrong values."""
    types = _types(name)
    if text.lower() in ("true", "false") and bool in types:
        return text.lower() == "true"
    # settings accept 2.0 as 2, like the options of commands
    match = re.fullmatch(r"([+-]?[0-9_]+)\.0+", text)
    if match is not None and int in types and float not in types:
        text = match[1]
    for number in (int, float):
        if number in types:
            try:
                return number(text)
            except ValueError:
                pass
    return _or_none(name, text)


def _or_none(name: str, value: object) -> object:
    """Replace the text ``none`` with None for a setting that may be None."""
    none = isinstance(value, str) and value.lower() == "none"
    return None if none and NoneType in _types(name) else value


def _types(name: str) -> set[Any]:
    """Return the types of a setting; an unknown setting has no types."""
    field = setting_fields().get(name)
    return _plain(field.annotation) if field else set()


def _plain(annotation: Any) -> set[Any]:
    """Return the types of an annotation without their ranges."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        return {kind for part in get_args(annotation) for kind in _plain(part)}
    return _plain(get_args(annotation)[0]) if origin is Annotated else {annotation}


def _toml_value(value: object) -> str:
    """Format a value as JSON, which is also valid TOML for values of settings."""
    return json.dumps("none" if value is None else value, ensure_ascii=False)
