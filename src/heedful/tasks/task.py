"""The description of a task for other packages."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar

from heedful.families.family import Recipe
from heedful.settings.table import SettingsTable

Settings = Mapping[str, Any]
"""Settings of a run, by their dotted names."""


class Task:
    """
    The task that a run learns; the defaults of attributes and methods are those of translation.

    This class does not import torch; the modules that `run` and `text` name may import it.
    """

    settings: ClassVar[type[SettingsTable] | None] = None
    """The task's table of settings; None if it has no settings."""
    recipes: ClassVar[Mapping[str, Recipe]] = {}
    """The task's recipes by name."""
    changes: ClassVar[Settings] = {}
    """The settings that turn a recipe of another task into a recipe of this task."""
    free_changes: ClassVar[tuple[str, ...]] = ()
    """Names in `changes` whose values in a user's file are kept."""
    metrics: ClassVar[tuple[str, ...]] = ()
    """Values that the task adds to `train.best_by`."""
    run: ClassVar[str] = "heedful.runs.task:RunTask"
    """Module and name of a subclass of `heedful.runs.task.RunTask`."""
    text: ClassVar[str] = ""
    """
    The module that finds the task's text, with `find_text(files, tokenizer)` for training data and
    `held_out(files, config)` for validation; empty for text in two languages.
    """
    text_options: ClassVar[type[Any] | None] = None
    """
    A dataclass of two options for training and validation text; None for text in two languages. The
    options are keywords of `heedful.train` and flags of the task's command.
    """
    alone: ClassVar[str] = ""
    """A clause for messages, which states that the task learns only from its own text."""
    other_text: ClassVar[str] = ""
    """The error message for training this task on the text of another task."""
    shared: ClassVar[tuple[str, ...]] = ()
    """Settings that must be equal in all members of an ensemble, by their dotted names."""
    models: ClassVar[str] = "translators"
    """Plural noun for the task's models, for messages."""
    export_note: ClassVar[str] = ""
    """A note to users about a model that `exported` has changed."""

    def acts(self, settings: Settings) -> bool:
        """Return whether a run with these settings has this task."""
        del settings
        return False

    def clashes(self, settings: Settings) -> Iterable[str]:
        """List conflicting settings, each with the change that resolves the conflict."""
        del settings
        return ()

    def check_origin(self, run: str, origin: Settings, reset: Collection[str]) -> None:
        """
        Refuse to fine-tune a run that has another task.

        `run`: the folder of the run. `origin`: its settings. `reset`: parts of the run that are not
        inherited.

        Raises `SettingError` for another task.
        """

    def check_alike(
        self, run: str, origin: Settings, settings: Settings, reset: Collection[str]
    ) -> None:
        """Refuse `settings` of a fine-tuned run that do not fit the settings of its origin."""

    def beyond_transformer(self, settings: Settings) -> list[tuple[str, object]]:
        """List settings, with values, of model parts that the paper's Transformer lacks."""
        del settings
        return []

    def exported(self, settings: Settings) -> Settings:
        """List the settings that change in an exported model, such as rules of the search."""
        del settings
        return {}


TRANSLATION = Task()
