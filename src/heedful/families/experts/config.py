"""The settings of mixtures of experts."""

import re
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from heedful.families.registry import names_with
from heedful.settings.conditions import ActsIf
from heedful.settings.field_types import NotNegative, Width, number_as_text, written_as
from heedful.settings.model import SIDES, ModelSettings
from heedful.settings.table import SettingsTable

EXPERTS = ActsIf("model.experts.count", unless=(None,))
NOISY = ActsIf("model.experts.gating", ("noisy",))
_ENCODER, _DECODER = (ActsIf(side, families_with="networks") for side in SIDES)
MixtureLayers = Annotated[
    str,
    BeforeValidator(number_as_text),
    written_as(
        r"all|none|[1-9][0-9]{0,3}(?: [1-9][0-9]{0,3})*",
        "must be all, none, or layer numbers from 1, separated by spaces",
    ),
]


class ExpertsConfig(SettingsTable):
    """Mixtures of experts (Shazeer et al. 2017)."""

    table: ClassVar[str] = "model.experts"

    count: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Number of experts in a mixture. None means no mixtures."""
    per_token: Annotated[Width, EXPERTS] = 2
    """Experts per token; with groups, this many groups per token and experts per chosen group."""
    gating: Annotated[Literal["noisy", "balanced"], EXPERTS] = "noisy"
    """Noisy top-k, or balanced: experts get equal numbers of tokens per training micro-batch."""
    groups: Annotated[Annotated[int, Field(ge=2, le=10_000)] | None, EXPERTS] = None
    """Number of groups of a two-level gate. None means one level."""
    d_ff: Annotated[Width | None, EXPERTS] = None
    """Inner width of an expert. None means the feed-forward width, or 4 * d_model if recurrent."""
    encoder_layers: Annotated[MixtureLayers, EXPERTS, _ENCODER] = "all"
    """Encoder layers with a mixture, replacing feed-forward networks or after recurrent layers."""
    decoder_layers: Annotated[MixtureLayers, EXPERTS, _DECODER] = "all"
    """Decoder layers with a mixture."""
    sigmoid: Annotated[bool, EXPERTS] = False
    """Whether a sigmoid follows each mixture."""
    importance_loss: Annotated[NotNegative, EXPERTS, NOISY] = 0.01
    """Weight of the penalty for unequal sums of gate values per expert."""
    load_loss: Annotated[NotNegative, EXPERTS, NOISY] = 0.01
    """Weight of the penalty for unequal numbers of tokens per expert."""

    def changed(self) -> list[tuple[str, object]]:
        """List the number of experts by its dotted name, if there are mixtures."""
        return [] if self.count is None else [(f"{self.table}.count", self.count)]


def mixture_layers(text: str, layers: int) -> tuple[int, ...]:
    """Read the numbers of the layers with a mixture, counted from 1."""
    if text == "none":
        return ()
    if text == "all":
        return tuple(range(1, layers + 1))
    return tuple(sorted({int(number) for number in re.findall(r"\d+", text)}))


def layers_with_mixtures(model: ModelSettings, side: str) -> tuple[int, ...]:
    """List the layers of an encoder or decoder that have a mixture, counted from 1."""
    experts = model.part(ExpertsConfig)
    if experts.count is None or getattr(model, side) not in names_with("networks"):
        return ()
    return mixture_layers(getattr(experts, f"{side}_layers"), getattr(model, f"{side}_layers"))
