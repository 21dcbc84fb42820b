"""
The settings of the model: those of `ModelSettings` and a table for each family.

A registered family adds its names to the values of `model.encoder` and `model.decoder`, and its
table to ``[model]``.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import create_model, model_validator
from pydantic.fields import FieldInfo

from heedful.families.registry import (
    decoder_family,
    decoders,
    encoder_family,
    encoders,
    families,
    names_with,
)
from heedful.settings.attention_clashes import attention_clashes
from heedful.settings.conditions import ActsIf
from heedful.settings.model import SIDES, ModelSettings


class _ComposedSettings(ModelSettings):
    """What can be said of a model once its families are known."""

    @property
    def cross_attention(self) -> tuple[int, int]:
        """Layers and heads of the decoder's attention to the source; (0, 0) without attention."""
        return (0, 0) if self.no_attention else decoder_family(self.decoder).cross_attention(self)

    @property
    def no_attention(self) -> str:
        """The choice by which the decoder does not attend to the source; empty if it attends."""
        return decoder_family(self.decoder).no_attention(self)

    @property
    def no_alignment(self) -> str:
        """The choice by which attention links no words; empty if it links them."""
        return self.no_attention or encoder_family(self.encoder).no_alignment(self)

    @model_validator(mode="after")
    def _parts_fit(self) -> "_ComposedSettings":
        """Check what goes together within a family, then between all."""
        names = {self.encoder, self.decoder}
        memory = encoder_family(self.encoder).memory_width(self)
        clashes = [
            clash
            for family in families()
            if not family.names or names.intersection(family.names)
            for clash in family.clashes(self, memory)
        ]
        clashes += attention_clashes(self)
        if wrong := clashes or [*self.clashes(bool(names.intersection(names_with("positions"))))]:
            raise ValueError("; ".join(wrong))
        return self


def _family_fields() -> dict[str, Any]:
    """List what the families add: their names, and their tables."""
    fields: dict[str, Any] = {}
    for side, names in (("encoder", encoders()), ("decoder", decoders())):
        fields[side] = (Literal[names], ModelSettings.model_fields[side])
    for family in families():
        if (table := family.settings) is not None:
            condition = family.condition or ActsIf(SIDES, family.names)
            field = FieldInfo(default=table(), description=type(family).__doc__)
            fields[table.table.rpartition(".")[2]] = (Annotated[table, condition], field)
    return fields


if TYPE_CHECKING:

    class ModelConfig(_ComposedSettings):
        """The shape of the model and every choice inside it."""

else:
    ModelConfig = create_model(
        "ModelConfig",
        __base__=_ComposedSettings,
        __module__=__name__,
        __doc__="The shape of the model and every choice inside it.",
        **_family_fields(),
    )
