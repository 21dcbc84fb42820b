"""
The settings of attention inside a Transformer.

`heedful.config.model` adds the values of the families.
"""

from typing import Annotated, ClassVar, Literal

from heedful.settings.conditions import ActsIf
from heedful.settings.field_types import Width
from heedful.settings.table import SettingsTable

TRANSFORMER = ActsIf(("model.encoder", "model.decoder"), ("transformer",))
_MIXERS = ("model.attention.encoder", "model.attention.decoder")


class AttentionSettings(SettingsTable):
    """Attention inside a Transformer."""

    table: ClassVar[str] = "model.attention"

    encoder: Annotated[str, ActsIf("model.encoder", ("transformer",))] = "attention"
    """What mixes the positions of an encoder's layer."""
    decoder: Annotated[str, ActsIf("model.decoder", ("transformer",))] = "attention"
    """What mixes the positions of a decoder's layer."""
    score: Annotated[
        Literal["scaled", "unscaled", "additive"],
        ActsIf(("model.decoder", "model.attention.encoder"), ("transformer", "attention")),
        ActsIf(("model.encoder", "model.attention.decoder"), families_without="unscored"),
    ] = "scaled"
    """Score of query and key: q k / sqrt(d_k) (paper), q k, or v tanh(q + k)."""
    window: Annotated[Width | None, ActsIf(_MIXERS, ("attention",), families_with="window")] = None
    """Neighbours r that self-attention sees: half on each side, or the last r. None means all."""

    def changed(self) -> list[tuple[str, object]]:
        """List the settings that differ from the paper's, by their dotted names."""
        values = self.model_dump()
        paper = {name: field.default for name, field in type(self).model_fields.items()}
        return [(f"{self.table}.{name}", v) for name, v in values.items() if v != paper[name]]
