"""
The settings of a Transformer and of all models; the defaults are the paper's base model.

`heedful.config.model` adds the tables of the families.
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, TypeVar

from heedful.settings.attention import TRANSFORMER, AttentionSettings
from heedful.settings.conditions import ActsIf
from heedful.settings.field_types import CountOrZero, Depth, Norm, Positive, Share, Sharing, Width
from heedful.settings.table import SettingsTable

Table = TypeVar("Table", bound=SettingsTable)
SIDES = ("model.encoder", "model.decoder")
_WITH_NORM = ActsIf("model.norm_kind", unless=("none",))
ENCODER, DECODER = (ActsIf(side, ("transformer",)) for side in SIDES)
SINUSOIDS = ("interleaved", "halves", "grouped")
POSITIONS = ActsIf(SIDES, families_with="positions")
_ATTENDING = ("model.decoder", "model.attention.encoder")
_WITH_PAIRS = ActsIf(_ATTENDING, ("transformer", "attention"))
_HEADS = ActsIf("model.attention.encoder", ("attention",), families_with="heads")
_WITH_HEADS = ActsIf(_ATTENDING, ("transformer", "attention"), families_with="heads")
DEPTHS = [ActsIf(side, families_with="layers") for side in SIDES]


class ModelSettings(SettingsTable):
    """The settings of a Transformer, and the settings that all models share."""

    table: ClassVar[str] = "model"

    encoder: str = "transformer"
    """Family of the encoder."""
    decoder: str = "transformer"
    """Family of the decoder."""
    d_model: Width = 512
    """Width of the states between layers."""
    d_ff: Annotated[Width, TRANSFORMER] = 2048
    """Inner width of the position-wise feed-forward networks."""
    heads: Annotated[Width, TRANSFORMER, _WITH_HEADS] = 8
    """Number of attention heads in every layer."""
    d_k: Annotated[Width | None, TRANSFORMER, _WITH_PAIRS] = None
    """Width of one head's queries and keys. None means d_model / heads."""
    d_v: Annotated[Width | None, TRANSFORMER, _WITH_PAIRS] = None
    """Width of one head's values. None means d_model / heads."""
    encoder_layers: Annotated[Depth, DEPTHS[0]] = 6
    """Number of encoder layers."""
    decoder_layers: Annotated[Depth, DEPTHS[1]] = 6
    """Number of decoder layers."""
    encoder_sharing: Annotated[Sharing, ENCODER] = ""
    """Encoder layers with equal numbers, such as 1,1,2,2, share weights. Empty means no sharing."""
    decoder_sharing: Annotated[Sharing, DECODER] = ""
    """Decoder layers with equal numbers, such as 1,1,2,2, share weights. Empty means no sharing."""
    encoder_heads: Annotated[Width | None, ENCODER, _HEADS] = None
    """Number of attention heads in the encoder. None means model.heads."""
    decoder_heads: Annotated[Width | None, DECODER] = None
    """Number of attention heads in the decoder. None means model.heads."""
    encoder_d_ff: Annotated[Width | None, ENCODER] = None
    """Inner width of the encoder's feed-forward networks. None means model.d_ff."""
    decoder_d_ff: Annotated[Width | None, DECODER] = None
    """Inner width of the decoder's feed-forward networks. None means model.d_ff."""
    activation: Annotated[Literal["relu", "gelu", "gelu_tanh", "silu"], TRANSFORMER] = "relu"
    """Activation function of the feed-forward networks; gelu_tanh is GELU's tanh approximation."""
    gated: Annotated[bool, TRANSFORMER] = False
    """Whether one linear layer's activation gates another: act(x W) * (x V) (Shazeer 2020)."""
    feed_forward_bias: Annotated[bool, TRANSFORMER] = True
    """Whether the linear layers of the feed-forward networks have a bias."""
    dropout: Share = 0.1
    """Dropout probability of sub-layer outputs and of the embedding plus positional encoding."""
    norm_kind: Annotated[str, TRANSFORMER] = "layer"
    """Kind of normalization; layer is the paper's layer norm."""
    norm: Annotated[Norm, TRANSFORMER, _WITH_NORM] = "post"
    """Norm after residual sums (paper) or before sub-layers; pre-no-final has no final norm."""
    encoder_norm: Annotated[Norm | None, ENCODER, _WITH_NORM] = None
    """Where the encoder normalizes. None means model.norm."""
    decoder_norm: Annotated[Norm | None, DECODER, _WITH_NORM] = None
    """Where the decoder normalizes. None means model.norm."""
    norm_epsilon: Annotated[Positive, TRANSFORMER, _WITH_NORM] = 1e-6
    """Epsilon in the denominator of every norm."""
    residuals: Annotated[bool, TRANSFORMER] = True
    """Whether the input of a sub-layer is added to its output; false only for demonstration."""
    causal_mask: Annotated[bool, DECODER] = True
    """Whether the decoder hides later positions in training; false only for demonstration."""
    positions: Annotated[str, POSITIONS] = "interleaved"
    """Positional encoding, such as interleaved (paper), halves (paper's code), grouped (Marian)."""
    position_offset: Annotated[CountOrZero, POSITIONS, ActsIf("model.positions", SINUSOIDS)] = 0
    """Index of the first position; the paper does not define it."""
    embedding_norm: Annotated[
        bool, TRANSFORMER, POSITIONS, ActsIf("model.norm_kind", ("layer",))
    ] = False
    """Whether a layer norm follows the sum of embedding and positional encoding, as in BART."""
    tie_embeddings: Literal["all", "output", "embeddings", "none"] = "all"
    """Shared matrices: all, target embeddings with output, or source with target embeddings."""
    projection_bias: Annotated[bool, TRANSFORMER, _WITH_HEADS] = True
    """Whether the query, key, value and output projections have a bias."""
    output_bias: bool = False
    """Whether the logits have a bias."""
    scale_embeddings: Annotated[bool, TRANSFORMER] = True
    """Whether a Transformer's embeddings are multiplied by the square root of d_model."""
    scale_output: Annotated[bool, DECODER] = False
    """Whether a Transformer's decoder multiplies its output by d_model^-0.5 (T5)."""
    decoder_start: Literal["symbol", "zero", "pad", "end"] = "symbol"
    """First input of the decoder: a start symbol, a zero vector, padding or the end symbol."""
    source_end: bool = True
    """Whether the source ends in the end symbol."""
    attention: Annotated[AttentionSettings, TRANSFORMER] = AttentionSettings()
    """Attention inside a Transformer."""

    def part(self, table: type[Table]) -> Table:
        """Return the settings of a family, by the type of its table."""
        for name in type(self).model_fields:
            if type(settings := getattr(self, name)) is table:
                return settings
        raise LookupError(f"no family has the table {table.table}")

    def sharing(self, side: str) -> tuple[int, ...]:
        """Return, for each layer of the encoder or decoder, the index of its weights, from 1."""
        numbers = getattr(self, f"{side}_sharing")
        if not numbers:
            return tuple(range(1, getattr(self, f"{side}_layers") + 1))
        return tuple(map(int, numbers.split(",")))

    def clashes(self, has_positions: bool) -> Iterator[str]:
        """
        List conflicts: the number of heads must divide the width; sinusoids need an even width.

        `has_positions`: whether a family of the model adds positions to its embeddings.
        """
        if "transformer" in (self.encoder, self.decoder):
            yield from (self._near_divisors(name) for name in self._heads_that_do_not_divide())
        if has_positions and self.positions in SINUSOIDS and self.d_model % 2:
            yield (
                f"`model.d_model` must be even for sinusoidal positions, but got {self.d_model} "
                "(or set `model.positions` to learned)"
            )

    def _heads_that_do_not_divide(self) -> list[str]:
        """List the settings whose number of heads does not divide the width."""
        if self.d_k is not None and self.d_v is not None:
            return []
        deciding = [
            "heads" if getattr(self, f"{side}_heads") is None else f"{side}_heads"
            for side in ("encoder", "decoder")
            if getattr(self, side) == "transformer"
            and (side == "decoder" or self.attention.encoder == "attention")
        ]
        return [name for name in dict.fromkeys(deciding) if self.d_model % getattr(self, name)]

    def _near_divisors(self, name: str) -> str:
        """Report that the number of heads must divide the width, and name the nearest divisors."""
        heads = getattr(self, name)
        most = min(self.d_model, 100_000)  # bounds the time; no model has so many heads
        divisors = [n for n in range(1, most + 1) if self.d_model % n == 0]
        near = [max(n for n in divisors if n < heads), *[n for n in divisors if n > heads][:1]]
        return (
            f"`model.{name}` must divide `model.d_model` ({self.d_model}) unless `model.d_k` and "
            f"`model.d_v` are both set, but it is {heads}; set it to {' or '.join(map(str, near))}"
        )
