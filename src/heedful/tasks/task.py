"""The description of a task for the rest of the program."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar

from heedful.families.family import Recipe
from heedful.settings.table import SettingsTable

Settings = Mapping[str, Any]
"""Settings of a run, by their dotted names."""


class Task:
    """
    The task that a run learns; whatever a task does not define is as in translation.

    This class needs no torch and no run; the modules that `run` and `text` name do.
    """

    settings: ClassVar[type[SettingsTable] | None] = None
    """Its table of settings; None if it has none."""
    recipes: ClassVar[Mapping[str, Recipe]] = {}
    """Its recipes by name."""
    changes: ClassVar[Settings] = {}
    """The settings that turn a recipe of another task into a recipe of this task."""
    metrics: ClassVar[tuple[str, ...]] = ()
    """Values that it adds to `train.best_by`."""
    run: ClassVar[str] = "heedful.runs.task:RunTask"
    """Module and name of a subclass of `heedful.runs.task.RunTask`."""
    text: ClassVar[str] = ""
    """
    The module that finds its text, with `find_text(files, tokenizer)` for training data and
    `held_out(files, config)` for validation; empty for text of two languages.
    """
    text_options: ClassVar[type[Any] | None] = None
    """
    A dataclass of two options, text for training and for validation; None for text of two
    languages. They are keywords of `heedful.train` and flags of the task's own command.
    """
    alone: ClassVar[str] = ""
    """The clause of a message that the task learns from its own text only."""
    other_text: ClassVar[str] = ""
    """The message for a training of this task from the text of another one."""
    shared: ClassVar[tuple[str, ...]] = ()
    """Settings that must be equal in all members of an ensemble, by their dotted names."""
    models: ClassVar[str] = "translators"
    """Description of its models, for messages."""
    export_note: ClassVar[str] = ""
    """A note to users about a model that `exported` has changed."""

    def acts(self, settings: Settings) -> bool:
        """Decide whether a run has this task."""
        del settings
        return False

    def clashes(self, settings: Settings) -> Iterable[str]:
        """List conflicting settings, each with the change that resolves the conflict."""
        del settings
        return ()

    def check_origin(self, run: str, origin: Settings, reset: Collection[str]) -> None:
        """
        Refuse to fine-tune a run that has another task.

        `run`: its folder. `origin`: its settings. `reset`: parts that begin anew.

        Raises `SettingError`.
        """

    def check_alike(
        self, run: str, origin: Settings, settings: Settings, reset: Collection[str]
    ) -> None:
        """Refuse settings of a fine-tuned run that its origin does not allow, as `check_origin`."""

    def beyond_transformer(self, settings: Settings) -> list[tuple[str, object]]:
        """List settings of a part that the paper's Transformer does not have, with their values."""
        del settings
        return []

    def exported(self, settings: Settings) -> Settings:
        """List the settings that change in an exported model, such as rules of the search."""
        del settings
        return {}


TRANSLATION = Task()
