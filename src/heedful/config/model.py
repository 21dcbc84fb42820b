"""
The settings of the model: the settings of `ModelSettings` and a table for each family.

A registered family adds its names to the values of `model.encoder`, `model.decoder` and other
settings, and its table to ``[model]``.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from pydantic import create_model, model_validator
from pydantic.fields import FieldInfo

from heedful.families.registry import (
    decoder_family,
    encoder_family,
    families,
    help_of,
    is_named,
    names_with,
    values_of,
)
from heedful.settings.attention import TRANSFORMER, AttentionSettings
from heedful.settings.conditions import ActsIf
from heedful.settings.model import SIDES, ModelSettings
from heedful.settings.registries import CHOSEN_BY
from heedful.settings.table import SettingsTable


class _ComposedSettings(ModelSettings):
    """Properties of a model that depend on its families."""

    @property
    def cross_attention(self) -> tuple[int, int]:
        """Numbers of layers and heads that attend to the source; (0, 0) without attention."""
        return (0, 0) if self.no_attention else decoder_family(self.decoder).cross_attention(self)

    @property
    def no_attention(self) -> str:
        """The setting that rules out attention to the source; empty if attention is possible."""
        return decoder_family(self.decoder).no_attention(self)

    @property
    def no_alignment(self) -> str:
        """The setting that rules out word alignments from attention; empty if they are possible."""
        return self.no_attention or encoder_family(self.encoder).no_alignment(self)

    @model_validator(mode="after")
    def _parts_fit(self) -> "_ComposedSettings":
        """Check the settings within each family, then across families."""
        names = {self.encoder, self.decoder}
        memory = encoder_family(self.encoder).memory_width(self)
        clashes = [
            clash
            for family in families()
            if is_named(family, self)
            for clash in family.clashes(self, memory)
        ]
        if wrong := clashes or [*self.clashes(bool(names.intersection(names_with("positions"))))]:
            raise ValueError("; ".join(dict.fromkeys(wrong)))  # sides may report the same clash
        return self


def _named_fields(table: type[SettingsTable]) -> dict[str, Any]:
    """Return the fields of a table that choose families, with their names and help texts."""
    fields: dict[str, Any] = {}
    for name, old in table.model_fields.items():
        if values := values_of(setting := f"{table.table}.{name}"):
            about = f"{(old.description or '').removesuffix('.')}{help_of(setting)}."
            field = FieldInfo(description=about)
            fields[name] = (Annotated[Literal[values], *old.metadata, field], old.default)
    return fields


def _family_fields() -> dict[str, Any]:
    """Return the fields of the model that depend on families, and the tables of families."""
    fields = _named_fields(ModelSettings)
    about = FieldInfo(default=AttentionConfig(), description=AttentionSettings.__doc__)
    fields["attention"] = (Annotated[AttentionConfig, TRANSFORMER], about)
    for family in families():
        if (table := family.settings) is not None:
            condition = family.condition or ActsIf(SIDES, family.names)
            field = FieldInfo(default=table(), description=type(family).__doc__)
            fields[table.table.rpartition(".")[2]] = (Annotated[table, condition], field)
    return fields


def _compose_attention() -> Any:
    """Build the table of attention settings with the names that families and plugins add."""
    return create_model(
        "AttentionConfig",
        __base__=AttentionSettings,
        __module__=__name__,
        __doc__=AttentionSettings.__doc__,
        **_named_fields(AttentionSettings),
    )


def _compose_model() -> Any:
    """Build the table of model settings with the names and the tables that families add."""
    return create_model(
        "ModelConfig",
        __base__=_ComposedSettings,
        __module__=__name__,
        __doc__="The settings of the model.",
        **_family_fields(),
    )


def compose_again() -> None:
    """Update `AttentionConfig` and `ModelConfig` in place for the registered families."""
    take_fields(AttentionConfig, _compose_attention())
    extend_choices(AttentionConfig)
    take_fields(ModelConfig, _compose_model())


def take_fields(table: type[SettingsTable], origin: type[SettingsTable]) -> None:
    """Replace the fields of a table with the fields of `origin`."""
    table.__pydantic_fields__ = origin.__pydantic_fields__
    table.model_rebuild(force=True)


def extend_choices(table: type[SettingsTable]) -> None:
    """Accept the names that plugins have registered as values of a table's settings."""
    for name, field in table.model_fields.items():
        registry = CHOSEN_BY.get(f"{table.table}.{name}")
        if registry is not None and get_origin(field.annotation) is Literal:
            own = [value for value in get_args(field.annotation) if value in registry.own]
            field.annotation = Literal[(*own, *registry.added())]
    table.model_rebuild(force=True)


if TYPE_CHECKING:

    class AttentionConfig(AttentionSettings):
        """Attention inside a Transformer."""

    class ModelConfig(_ComposedSettings):
        """The settings of the model."""

else:
    AttentionConfig = _compose_attention()
    ModelConfig = _compose_model()
