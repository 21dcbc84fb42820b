"""The settings of the model; the defaults are the paper's base model."""

from typing import Annotated, ClassVar, Literal

from pydantic import model_validator

from heedful.config.attention import TRANSFORMER, AttentionConfig
from heedful.config.attention_clashes import attention_clashes
from heedful.config.bytenet import ByteNetConfig
from heedful.config.bytenet_clashes import bytenet_clashes
from heedful.config.conditions import ActsIf
from heedful.config.convs2s import ConvS2SConfig, attending_layers, layers_of
from heedful.config.convs2s_clashes import convs2s_clashes
from heedful.config.experts import ExpertsConfig
from heedful.config.experts_clashes import experts_clashes
from heedful.config.field_types import CountOrZero, Depth, Norm, Positive, Share, Width
from heedful.config.recurrent import RecurrentConfig
from heedful.config.recurrent_clashes import memory_width, recurrent_clashes
from heedful.config.settings_table import SettingsTable

Family = Literal["transformer", "recurrent", "convs2s", "bytenet"]
# written out: of a union of two a message would name both
EncoderFamily = Literal["transformer", "recurrent", "convs2s", "bytenet", "average", "sum"]
FAMILIES = ("model.encoder", "model.decoder")
_WITH_NORM = ActsIf("model.norm_kind", unless=("none",))
ENCODER, DECODER = (ActsIf(side, ("transformer",)) for side in FAMILIES)
POOLED = ("average", "sum")
SINUSOIDS = ("interleaved", "halves", "grouped")
POSITIONS = ActsIf(FAMILIES, ("transformer", "convs2s"))
_ATTENDING = ("model.decoder", "model.attention.encoder")
_WITH_PAIRS = ActsIf(_ATTENDING, ("transformer", "attention"))
_WITH_HEADS = ActsIf(_ATTENDING, ("transformer", "attention", "fastformer"))
DEPTHS = [ActsIf(side, ("transformer", "recurrent", "bytenet")) for side in FAMILIES]


class ModelConfig(SettingsTable):
    """The shape of the model and every choice inside it."""

    table: ClassVar[str] = "model"

    encoder: EncoderFamily = "transformer"
    """Family of the encoder; average and sum give every position the mean or sum of the words."""
    decoder: Family = "transformer"
    """Family of the decoder."""
    d_model: Width = 512
    """Width of the states between layers."""
    d_ff: Annotated[Width, TRANSFORMER] = 2048
    """Inner width of the position-wise feed-forward networks."""
    heads: Annotated[Width, TRANSFORMER, _WITH_HEADS] = 8
    """Attention heads of every layer."""
    d_k: Annotated[Width | None, TRANSFORMER, _WITH_PAIRS] = None
    """Width of one head's queries and keys. None means d_model / heads."""
    d_v: Annotated[Width | None, TRANSFORMER, _WITH_PAIRS] = None
    """Width of one head's values. None means d_model / heads."""
    encoder_layers: Annotated[Depth, DEPTHS[0]] = 6
    """Layers of the encoder."""
    decoder_layers: Annotated[Depth, DEPTHS[1]] = 6
    """Layers of the decoder."""
    encoder_heads: Annotated[
        Width | None, ENCODER, ActsIf("model.attention.encoder", unless=("convolution",))
    ] = None
    """Attention heads of the encoder. None means heads."""
    decoder_heads: Annotated[Width | None, DECODER] = None
    """Attention heads of the decoder. None means heads."""
    encoder_d_ff: Annotated[Width | None, ENCODER] = None
    """Inner width of the encoder's feed-forward networks. None means d_ff."""
    decoder_d_ff: Annotated[Width | None, DECODER] = None
    """Inner width of the decoder's feed-forward networks. None means d_ff."""
    activation: Annotated[Literal["relu", "gelu", "gelu_tanh", "silu"], TRANSFORMER] = "relu"
    """Non-linearity of the feed-forward networks; gelu_tanh is the approximation by tanh."""
    dropout: Share = 0.1
    """Dropout probability of each sub-layer's output and of the sum of embedding and position."""
    norm_kind: Annotated[Literal["layer", "batch", "none"], TRANSFORMER] = "layer"
    """Layer norm (paper); batch norm, by which the sentences of a batch mix; or none."""
    norm: Annotated[Norm, TRANSFORMER, _WITH_NORM] = "post"
    """Norm post each sum (paper), pre each sub-layer, or pre and no final one."""
    encoder_norm: Annotated[Norm | None, ENCODER, _WITH_NORM] = None
    """Where the encoder normalises. None means norm."""
    decoder_norm: Annotated[Norm | None, DECODER, _WITH_NORM] = None
    """Where the decoder normalises. None means norm."""
    norm_epsilon: Annotated[Positive, TRANSFORMER, _WITH_NORM] = 1e-6
    """Added to the variance inside every norm."""
    residuals: Annotated[bool, TRANSFORMER] = True
    """Whether the input of a sub-layer is added to its output; false is for teaching."""
    causal_mask: Annotated[bool, DECODER] = True
    """Whether the decoder hides later positions in training; false is for teaching."""
    positions: Annotated[
        Literal["interleaved", "halves", "grouped", "learned", "none"], POSITIONS
    ] = "interleaved"
    """Sinusoids alternating (paper), in halves (its code), grouped (Marian); learned, or none."""
    position_offset: Annotated[CountOrZero, POSITIONS, ActsIf("model.positions", SINUSOIDS)] = 0
    """Number of the first position; the paper does not define it."""
    tie_embeddings: Literal["all", "output", "none"] = "all"
    """Shared matrices: both embeddings and output (all), target and output (output), or none."""
    projection_bias: Annotated[bool, TRANSFORMER, _WITH_HEADS] = True
    """Whether the query, key, value and output projections have a bias."""
    output_bias: bool = False
    """Whether the logits have a bias."""
    scale_embeddings: Annotated[bool, TRANSFORMER] = True
    """Whether a Transformer's embeddings are multiplied by the square root of d_model."""
    decoder_start: Literal["symbol", "zero", "pad", "end"] = "symbol"
    """First input of the decoder: a start symbol, a zero vector, padding or the end symbol."""
    source_end: bool = True
    """Whether the source ends in the end symbol."""
    attention: Annotated[AttentionConfig, TRANSFORMER] = AttentionConfig()
    """Attention inside a Transformer."""
    recurrent: Annotated[RecurrentConfig, ActsIf(FAMILIES, ("recurrent",))] = RecurrentConfig()
    """Recurrent encoders and decoders."""
    convs2s: Annotated[ConvS2SConfig, ActsIf(FAMILIES, ("convs2s",))] = ConvS2SConfig()
    """Convolutional encoders and decoders of Gehring et al. (2017)."""
    experts: Annotated[ExpertsConfig, ActsIf(FAMILIES, ("transformer", "recurrent"))] = (
        ExpertsConfig()
    )
    """Mixtures of experts, in feed-forward networks or between recurrent layers."""
    bytenet: Annotated[ByteNetConfig, ActsIf(FAMILIES, ("bytenet",))] = ByteNetConfig()
    """ByteNet's encoder and decoder."""

    @property
    def cross_attention(self) -> tuple[int, int]:
        """Layers and heads of the decoder's attention to the source; (0, 0) without attention."""
        if self.no_attention:
            return 0, 0
        if self.decoder == "recurrent":
            return 1, 1
        if self.decoder == "convs2s":
            layers = len(layers_of(self.convs2s.decoder_layers))
            return len(attending_layers(self.convs2s.attention, layers)), 1
        return self.decoder_layers, self.decoder_heads or self.heads

    @property
    def no_attention(self) -> str:
        """The choice by which the decoder does not attend to the source; empty if it attends."""
        if self.decoder == "recurrent" and self.recurrent.score == "none":
            return "`model.recurrent.score` is none"
        return "`model.decoder` is bytenet" if self.decoder == "bytenet" else ""

    @property
    def no_alignment(self) -> str:
        """The choice by which attention links no words; empty if it links them."""
        return self.no_attention or (
            f"`model.encoder` is {self.encoder}" if self.encoder in POOLED else ""
        )

    @model_validator(mode="after")
    def _widths_fit(self) -> "ModelConfig":
        """Check that heads divide the width and that sinusoids come in pairs."""
        wrong = [
            *recurrent_clashes(self),
            *convs2s_clashes(self, memory_width(self)),
            *bytenet_clashes(self),
            *attention_clashes(self),
            *experts_clashes(self),
        ]
        if wrong:
            raise ValueError("; ".join(wrong))
        if "transformer" in (self.encoder, self.decoder):
            wrong = [self._near_divisors(name) for name in self._heads_that_do_not_divide()]
        has_positions = {"transformer", "convs2s"} & {self.encoder, self.decoder}
        if has_positions and self.positions in SINUSOIDS and self.d_model % 2:
            wrong.append(
                f"`model.d_model` must be even for sines and cosines, but {self.d_model} came "
                "(or set `model.positions` to learned)"
            )
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

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
        """Report that the heads must divide the width, with the nearest numbers that do."""
        heads = getattr(self, name)
        most = min(self.d_model, 100_000)  # bounds the time; no model has so many heads
        divisors = [n for n in range(1, most + 1) if self.d_model % n == 0]
        near = [max(n for n in divisors if n < heads), *[n for n in divisors if n > heads][:1]]
        return (
            f"`model.{name}` must divide `model.d_model` ({self.d_model}) unless "
            f"`model.d_k` and `model.d_v` are both set, but it is {heads}; "
            f"near it, {' and '.join(map(str, near))} would do"
        )
