"""
Plugins: Python files that register their own parts.

::

    from heedful import plugins

    plugins.FAMILIES.register("mean", Mean())            encoder, decoder, layer, network, norm
    plugins.SCORES.register("cosine", Cosine)            a score of queries and keys
    plugins.OBJECTIVES.register("focal", build_focal)    the training objective
    plugins.SCHEDULES.register("sine", sine_rate)        the learning rate of a step
    plugins.METRICS.register("length", metric)           a metric for `train.best_by`
    plugins.RULES.register("no-digits", NoDigits)        a rule for `search.rules`
    plugins.AUGMENTATIONS.register("shout", shout)       a change for `data.augment`

Heedful's own parts are in the same registries. `heedful.settings.registries` documents the
interface of each kind of part, and `heedful.families.family` documents families.

A file is read once, so the recorded SHA-256 belongs to the executed bytes. It is loaded only if the
user names it, by ``--plugin FILE``, ``plugins=`` in Python, or ``plugins`` in a settings file. A
run folder holds a copy, which is never executed.
"""

import hashlib
import os
import re
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from heedful.arguments import checked
from heedful.errors import HeedfulError, PluginError
from heedful.families.registry import FAMILIES
from heedful.files import read_within
from heedful.settings.model import SIDES, ModelSettings
from heedful.settings.registries import (
    AUGMENTATIONS,
    CHOSEN_BY,
    METRICS,
    OBJECTIVES,
    RULES,
    SCHEDULES,
    SCORES,
    ValidationMetric,
)
from heedful.settings.registry import Registry, registering

__all__ = [
    "AUGMENTATIONS",
    "FAMILIES",
    "METRICS",
    "OBJECTIVES",
    "RULES",
    "SCHEDULES",
    "SCORES",
    "Plugin",
    "ValidationMetric",
    "load_plugin",
    "loaded_plugins",
]

NAME = r"[\w.+-]{1,200}\.py"
"""Pattern of the name of a plugin file, and of its copy in a run folder."""
FOLDER = "plugins"
"""The subfolder for copies of plugins in a run folder."""
_MODULE = "heedful_plugin_"
_LARGEST = 1 << 22


@dataclass(frozen=True, eq=False)
class Plugin:
    """A loaded plugin file."""

    path: Path
    """The path from which the file was read."""
    content: bytes
    """The bytes that were executed."""

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.path.name

    @property
    def sha256(self) -> str:
        """The SHA-256 of the bytes, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def module(self) -> str:
        """The unique name of the plugin's module."""
        stem = re.sub(r"\W", "_", self.path.stem)
        return f"{_MODULE}{stem}_{self.sha256[:16]}"

    def __str__(self) -> str:
        return self.name


_loaded: dict[Path, Plugin] = {}


def loaded_plugins() -> tuple[Plugin, ...]:
    """List the plugins that are loaded in this process."""
    return tuple(_loaded.values())


def load_plugins(files: str | Path | Iterable[str | Path] | None) -> None:
    """Load files in order, except unchanged files that are already loaded."""
    for file in [files] if isinstance(files, str | Path) else files or ():
        load_plugin(file)


@checked
def load_plugin(file: str | Path) -> Plugin:
    """
    Execute a file, so that settings can name the parts that it registers.

    A file that has changed since it was loaded replaces its earlier version. The same bytes under
    another path are the same plugin. Raises `PluginError` if the file cannot be read or fails; then
    none of its parts stays registered.
    """
    path = Path(file).absolute()
    plugin = Plugin(path, _read(path))
    earlier = _loaded.get(path)
    if earlier is not None and earlier.content != plugin.content:
        unload_plugin(earlier)
    for known in _loaded.values():
        if known.content == plugin.content:
            return known
    if plugin.module in sys.modules:
        raise PluginError(f"a plugin must not load itself, but {path} does; remove that call.")
    try:
        _execute(plugin)
    except BaseException:
        _forget(plugin)
        raise
    _loaded[path] = plugin
    return plugin


def unload_plugin(plugin: Plugin) -> None:
    """Remove the parts that a plugin registered."""
    del _loaded[plugin.path]
    _forget(plugin)


_WHOLE_TRACEBACK = "To see the whole traceback, call the same function from Python."


def plugins_of(model: ModelSettings, settings: Mapping[str, Any]) -> list[Plugin]:
    """
    List the plugins whose parts the settings name, in the order of loading.

    `settings`: all settings by their dotted names. A loaded family with a table of settings always
    counts, because every run records this table.
    """
    owners = {
        (registry.kind, name): registry.plugin_of(name)
        for setting, registry in CHOSEN_BY.items()
        for part in str(settings.get(setting, "")).split()
        if (name := part.partition(":")[0]) in registry.added()
    }
    for name in FAMILIES.added():
        family = FAMILIES[name]
        is_chosen = any(settings.get(key) in names for key, names in family.choices.items())
        has_layers = any(family.part_layers(model, side.partition(".")[2]) for side in SIDES)
        if is_chosen or has_layers or family.settings is not None:
            owners[FAMILIES.kind, name] = FAMILIES.plugin_of(name)
    if loose := [name for (_, name), plugin in owners.items() if plugin is None]:
        raise PluginError(
            f"a run can record only parts from a plugin file, but {loose[0]!r} was registered "
            "without one; write its code to a file, and name the file in plugins=."
        )
    used = [plugin for plugin in loaded_plugins() if plugin in owners.values()]
    for plugin in used:
        alike = [known for known in used if known.name == plugin.name]
        if len(alike) > 1:
            raise PluginError(
                f"the plugins of a run must have different names, but {alike[0].path} and "
                f"{alike[1].path} have the same name; rename one of them."
            )
    return used


def classes_of_plugins(modules: Iterable[object]) -> list[str]:
    """List the classes of the modules that come from plugins, each with its plugin's file."""
    names = {plugin.module: plugin.name for plugin in loaded_plugins()}
    kinds = {type(module) for module in modules}
    return sorted(
        f"{k.__qualname__} of {names[k.__module__]}" for k in kinds if k.__module__ in names
    )


def failure_of_plugin(error: BaseException) -> PluginError | None:
    """
    Return an error that names the failing line of a plugin, or else all loaded plugins.

    Returns None if no plugin is loaded, or for an `OSError` outside plugins.

    The line is also found in the error's causes, and in tracebacks of other processes, which exist
    only as text.
    """
    text = "".join(traceback.format_exception(error))
    for plugin in loaded_plugins():
        if lines := re.findall(f'File "{re.escape(str(plugin.path))}", line ([0-9]+)', text):
            return PluginError(
                f"the plugin {plugin.path} must run without an error, but its line {lines[-1]} "
                f"raises {_first_line(error)}. {_WHOLE_TRACEBACK}"
            )
    if not loaded_plugins() or isinstance(error, OSError):
        return None
    paths = ", ".join(str(plugin.path) for plugin in loaded_plugins())
    return PluginError(
        f"heedful's code failed with {_first_line(error)}; a plugin may have returned a wrong "
        f"type or shape ({paths}). {_WHOLE_TRACEBACK}"
    )


def missing_plugins(
    records: Sequence[tuple[str, str]], folder: Path, may_differ: bool = False
) -> None:
    """
    Check that the plugins of a run are loaded.

    `records`: name and SHA-256 of each. `folder`: the run folder. `may_differ`: whether a file with
    the same name but other content is accepted. Raises `PluginError`.
    """
    digests = {plugin.sha256 for plugin in loaded_plugins()}
    names = {plugin.name: plugin for plugin in loaded_plugins()}
    for name, digest in records:
        if digest in digests or (may_differ and name in names):
            continue
        copy = folder / FOLDER / name
        if name in names:
            raise PluginError(
                f"{folder} must be used with the plugin {name} with SHA-256 {digest}, but "
                f"{names[name].path} has SHA-256 {names[name].sha256}. Name the file that the run "
                f"was made with{_copy(copy, digest)}. To use the changed file, run `heedful "
                "train` with --resume --allow-inexact-resume, which records it."
            )
        raise PluginError(
            f"{folder} needs the plugin {name} of SHA-256 {digest}. Plugins are code, so a file is "
            f"executed only if you name it: repeat the command with --plugin {name}, or in Python "
            f"with plugins=[{name!r}]{_copy(copy, digest)}."
        )


def _copy(copy: Path, digest: str) -> str:
    """Describe where the copy in a run folder is, for a message."""
    try:
        content = read_within(copy, _LARGEST)
    except OSError:
        return ""
    if hashlib.sha256(content).hexdigest() != digest:
        return f"; do not use the copy {copy}, which was changed"
    return f"; the run has a copy, {copy}, which you can read and save elsewhere"


def _read(path: Path) -> bytes:
    """Read a plugin file; refuse invalid names, and copies in run folders."""
    if not re.fullmatch(NAME, path.name):
        raise PluginError(
            "a plugin must be a Python file whose name has only letters, digits and . + - _ "
            f"before .py, but {path} is not; rename it."
        )
    # Links may lead into a run folder, and a run folder may contain links to any file.
    places = (os.path.abspath(path), f"{os.path.realpath(path.parent)}/_", os.path.realpath(path))
    for place in map(Path, places):
        if place.parent.name == FOLDER and os.path.exists(place.parents[1] / "config.json"):
            raise PluginError(
                f"a plugin must be a file of your own, but {path} is the copy in a run folder, "
                "which is never executed; save it elsewhere and name the saved file."
            )
    try:
        return read_within(path, _LARGEST)
    except OSError as error:
        raise PluginError(
            f"a plugin must be a readable file, but {path} cannot be read: {error.strerror}."
        ) from None


def _execute(plugin: Plugin) -> None:
    """Execute the bytes of a plugin as a module."""
    module = ModuleType(plugin.module)
    module.__file__ = str(plugin.path)
    sys.modules[plugin.module] = module  # `pickle` and `dataclass` need this entry
    before = sum(map(len, Registry.every))
    try:
        code = compile(plugin.content, str(plugin.path), "exec", dont_inherit=True)
        with registering(plugin):
            exec(code, module.__dict__)
    except HeedfulError as error:
        raise PluginError(f"the plugin {plugin.path} cannot be loaded: {error}") from error
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"the plugin {plugin.path} must run without an error, but "
            f"{_line(plugin, error)} raises {_first_line(error)}."
        ) from error
    if sum(map(len, Registry.every)) == before:
        raise PluginError(
            f"the plugin {plugin.path} must register something, but registers nothing; "
            "docs/howto/plugins.md shows how."
        )


def _line(plugin: Plugin, error: BaseException) -> str:
    """Name the line of a plugin's file that raised an error."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(plugin.path)
    ]
    number = error.lineno if isinstance(error, SyntaxError) else (lines[-1] if lines else None)
    return "it" if number is None else f"its line {number}"


def _first_line(error: BaseException) -> str:
    """Write the type of an error and the first line of its message."""
    text = str(error).partition("\n")[0].rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _forget(plugin: Plugin) -> None:
    """Remove a plugin's parts and its module."""
    for registry in Registry.every:
        registry.forget(plugin)
    sys.modules.pop(plugin.module, None)
