"""What a task tells the rest of the program."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar

from heedful.families.family import Recipe
from heedful.settings.table import SettingsTable

Settings = Mapping[str, Any]
"""Settings of a run, by their dotted names."""


class Task:
    """
    What a run learns to do; what a task does not define is as in translation.

    Nothing here needs torch or a run. What does is in the modules that `run` and `text` name.
    """

    settings: ClassVar[type[SettingsTable] | None] = None
    """Its table of settings; None if it has none."""
    recipes: ClassVar[Mapping[str, Recipe]] = {}
    """Its recipes by name."""
    changes: ClassVar[Settings] = {}
    """What makes a model of this task of a recipe of another one."""
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
    A dataclass of two options, its text for training and for validation: keywords of
    `heedful.train`, and flags of its own command; None for text of two languages.
    """
    alone: ClassVar[str] = ""
    """The clause of a message that its text is all that it learns from."""
    other_text: ClassVar[str] = ""
    """The message for a training of this task from the text of another one."""
    shared: ClassVar[tuple[str, ...]] = ()
    """Settings that must be equal in all members of an ensemble, by their dotted names."""
    models: ClassVar[str] = "translators"
    """What its models are, for messages."""
    export_note: ClassVar[str] = ""
    """What a user should know of a model that was changed by `exported`."""

    def acts(self, settings: Settings) -> bool:
        """Decide whether a run has this task."""
        del settings
        return False

    def clashes(self, settings: Settings) -> Iterable[str]:
        """List settings that do not go together, each with what to change."""
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
        """List what changes where a model leaves this program, such as rules of the search."""
        del settings
        return {}


TRANSLATION = Task()
