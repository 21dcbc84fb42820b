"""
The settings of attention inside a Transformer.

`heedful.config.model` adds the values of the families.
"""

from typing import Annotated, ClassVar, Literal

from heedful.settings.conditions import ActsIf
from heedful.settings.field_types import Share, Width
from heedful.settings.table import SettingsTable

TRANSFORMER = ActsIf(("model.encoder", "model.decoder"), ("transformer",))
_WITH_PAIRS = ActsIf(("model.decoder", "model.attention.encoder"), ("transformer", "attention"))
_MIXERS = ("model.attention.encoder", "model.attention.decoder")


class AttentionSettings(SettingsTable):
    """Attention inside a Transformer."""

    table: ClassVar[str] = "model.attention"

    encoder: Annotated[str, ActsIf("model.encoder", ("transformer",))] = "attention"
    """Mechanism by which each encoder layer combines positions."""
    decoder: Annotated[str, ActsIf("model.decoder", ("transformer",))] = "attention"
    """Mechanism by which each decoder layer combines positions."""
    score: Annotated[
        Literal["scaled", "unscaled", "additive"],
        _WITH_PAIRS,
        ActsIf(("model.encoder", "model.attention.decoder"), families_without="unscored"),
    ] = "scaled"
    """Score of query and key: q k / sqrt(d_k) (paper), q k, or v tanh(q + k)."""
    qk_norm: Annotated[str, _WITH_PAIRS] = "none"
    """Norm of queries and keys in each head."""
    kv_heads: Annotated[Width | None, _WITH_PAIRS] = None
    """Number of key-value heads, each for a group of query heads. None means one per query head."""
    dropout: Annotated[Share, _WITH_PAIRS] = 0.0
    """Dropout probability of the attention weights; the paper uses none."""
    window: Annotated[Width | None, ActsIf(_MIXERS, ("attention",), families_with="window")] = None
    """Window r of self-attention: r // 2 positions per side; in a decoder the last r. None: all."""

    def changed(self) -> list[tuple[str, object]]:
        """List settings that differ from the paper, except dropout, which only training uses."""
        values = self.model_dump(exclude={"dropout"})
        paper = {name: field.default for name, field in type(self).model_fields.items()}
        return [(f"{self.table}.{name}", v) for name, v in values.items() if v != paper[name]]
