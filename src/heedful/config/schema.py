"""
Every setting: its type, its range, its default and its help text.

Each table of a run has its own file: `model.py`, `data.py`, `train.py`, `search.py`. A task may add
a table (`heedful.tasks`). The defaults of `ModelConfig`, `TrainConfig` and `SearchConfig` are those
of the paper's base model. The text below a setting is its help text on the command line and its
comment in a TOML file. A wrong setting from any source raises `SettingError`, never pydantic's own
error.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import create_model, model_validator
from pydantic.fields import FieldInfo

from heedful.config.data import DataConfig
from heedful.config.model import ModelConfig, compose_again, extend_choices
from heedful.config.search import SearchConfig
from heedful.config.train import TrainConfig
from heedful.errors import SettingError
from heedful.families.registry import FAMILIES, families, names_with
from heedful.settings.conditions import Conditions, flat, idle_settings, names_of_idle
from heedful.settings.field_types import Name
from heedful.settings.registries import METRICS, OBJECTIVES, SCHEDULES, SCORES
from heedful.settings.table import SettingsTable, walk
from heedful.tasks.registry import tasks

Table = TypeVar("Table", bound=SettingsTable)


class _RunSettings(SettingsTable):
    """The settings of every run, with the methods that depend on the tasks."""

    recipe: Name = "custom"
    """Recipe that these settings are based on."""
    reading: Literal["paper", "t2t", "own"] = "own"
    """Source of the recipe's details: the paper's text, the authors' code, or neither."""
    model: ModelConfig = ModelConfig()
    """The model."""
    data: DataConfig = DataConfig()
    """Text, subwords and cleaning."""
    train: TrainConfig = TrainConfig()
    """Training."""
    search: SearchConfig = SearchConfig()
    """How translations are found."""

    @model_validator(mode="after")
    def _parts_fit(self) -> "_RunSettings":
        """Refuse settings that contradict each other; the message describes the first conflict."""
        if clash := next(filter(None, self._clashes()), ""):
            raise ValueError(clash)
        return self

    def _clashes(self) -> Iterator[str]:
        """Describe settings that contradict each other."""
        values, model, train = flat(self.to_dict()), self.model, self.train
        yield "; ".join(clash for task in tasks() for clash in task.clashes(values))
        tied = model.tie_embeddings
        if tied in ("all", "embeddings") and not self.data.shared_vocabulary:
            yield (
                f"`model.tie_embeddings` = {tied} needs `data.shared_vocabulary` = true, but got "
                "false; share the vocabulary, or set `model.tie_embeddings` to output or none"
            )
        if train.guided_attention and model.no_attention:
            yield (
                "`train.guided_attention` guides attention to the source, but the decoder has no "
                f"such attention ({model.no_attention}); set `train.guided_attention` to 0"
            )
        # the zeros of SimCut would change the running averages
        averaging = names_with("batch statistics", ("model.norm_kind",))
        if train.objective == "simcut" and model.norm_kind in averaging:
            yield (
                "`train.objective` = simcut needs a norm without running averages, but "
                f"`model.norm_kind` is {model.norm_kind}; set `model.norm_kind` to layer or "
                "rms, or leave `train.objective` out"
            )
        # without dropout, both passes of R-Drop are equal
        dropouts = [n for n in values if n.startswith("model.") and n.endswith("dropout")]
        if train.objective == "rdrop" and not any(values[name] for name in dropouts):
            yield (
                "`train.objective` = rdrop compares two passes with different dropout masks, so "
                "at least one dropout rate, such as `model.dropout`, must be above 0, but none "
                "is; set one, or set `train.objective` to simcut"
            )
        yield "; ".join(idle_settings(values, setting_defaults(), setting_conditions()))

    def part(self, table: type[Table]) -> Table:
        """Return the settings of a task, found by the type of its table."""
        return getattr(self, table.table)

    def to_dict(self) -> dict[str, Any]:
        """Convert all settings to plain values, as ``config.json`` of a run folder stores them."""
        return self.model_dump(mode="json")

    @classmethod
    def from_dict(cls, values: Any) -> "RunConfig":
        """
        Build checked settings from plain values.

        Types are strict: text that looks like a number is refused.

        Raises `SettingError` if a setting is unknown or out of range; the message gives the
        dotted name of each such setting.
        """
        if not isinstance(values, Mapping):
            raise SettingError(f"settings must be tables of names and values, but got {values!r}")
        return RunConfig(**values)

    def with_settings(
        self, settings: Mapping[str, Any], inherited: Mapping[str, Any] | None = None
    ) -> "RunConfig":
        """
        Return a changed copy, checked again as a whole.

        `inherited`: changes that `settings` overrides.

        All changes are made before the check, so that dependent settings may change together. A
        setting that no longer has an effect is reset to its default, unless `settings` names it.

        Raises `SettingError` if a setting is unknown or out of range; the message gives the
        dotted name of each such setting.
        """
        values = self.to_dict()
        for name, value in {**(inherited or {}), **settings}.items():
            table, last = _table_of(name, values)
            if table is None:
                values[name] = value
            else:
                table[last] = value
        return self.from_dict(without_idle(values, explicit=flat(settings)))


def _task_fields() -> dict[str, Any]:
    """Return the fields of the tasks, each a table of settings."""
    return {
        table.table: (table, FieldInfo(default=table(), description=type(task).__doc__))
        for task in tasks()
        if (table := task.settings) is not None
    }


if TYPE_CHECKING:

    class RunConfig(_RunSettings):
        """All settings of one run."""

else:
    RunConfig = create_model(
        "RunConfig",
        __base__=_RunSettings,
        __module__=__name__,
        __doc__="All settings of one run.",
        **_task_fields(),
    )


def follow_registries() -> None:
    """Rebuild the settings classes after a registry has changed."""
    setting_fields.cache_clear()
    setting_conditions.cache_clear()
    setting_defaults.cache_clear()
    compose_again()
    extend_choices(TrainConfig)
    for name, table in (("model", ModelConfig), ("train", TrainConfig)):
        RunConfig.model_fields[name].default = table()
    RunConfig.model_rebuild(force=True)


REGISTRIES = (FAMILIES, SCORES, OBJECTIVES, SCHEDULES, METRICS)
"""The registries whose names are values of settings."""
for _registry in REGISTRIES:
    _registry.watch(follow_registries)


@cache
def setting_fields() -> dict[str, FieldInfo]:
    """Return the fields of all settings by their dotted names."""
    return {name: field for name, field, _ in walk(RunConfig)}


@cache
def setting_conditions() -> Conditions:
    """Return the conditions under which settings have an effect, including those of tables."""
    extra = {name: added for family in families() for name, added in family.conditions.items()}
    return {
        name: tuple(item.with_families(names_with) for item in (*conditions, *extra.get(name, ())))
        for name, _, conditions in walk(RunConfig)
        if conditions
    }


@cache
def setting_defaults() -> dict[str, Any]:
    """Return the defaults of all settings by their dotted names."""
    return {name: field.default for name, field in setting_fields().items()}


def acting_settings(config: RunConfig) -> set[str]:
    """Return the dotted names of the settings that have an effect in a configuration."""
    values = flat(config.to_dict())
    return values.keys() - names_of_idle(values, setting_conditions())


def without_idle(values: dict[str, Any], explicit: Collection[str]) -> dict[str, Any]:
    """
    Reset settings that have no effect, in place, and return all values.

    `values`: tables of unchecked values. `explicit`: dotted names of settings that stay unchanged,
    so that a later check can refuse them.
    """
    known = {**setting_defaults(), **flat(values)}
    for name in names_of_idle(known, setting_conditions()):
        if name in explicit:
            continue
        table, last = _table_of(name, values)
        if table is not None and last in table:
            table[last] = setting_defaults()[name]
    return values


def _table_of(name: str, values: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Return the table of a setting, or None if it is missing, and the setting's name in it."""
    table: Any = values
    *above, last = name.split(".")
    for part in above:
        table = table.get(part) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else None, last


# A command loads its plugins before it imports this module.
if any(registry.added() for registry in (SCORES, OBJECTIVES, SCHEDULES, METRICS)):
    follow_registries()
