"""The sizes of a layer, its sub-layers, and the parts from other families that replace them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from torch import nn

from heedful.arguments import check_choice, check_counts, check_fields
from heedful.errors import SettingError
from heedful.model.attention import MultiHeadAttention
from heedful.model.feed_forward import FeedForward
from heedful.model.head_norms import BuildHeadNorm, HeadNorms
from heedful.model.parts import NO_NETWORKS, Mixer, Network, Networks
from heedful.model.relations import Relation, Rotation
from heedful.model.residual import RESIDUALS, NormFactory, NormKind, ScaledNorm, make_norm
from heedful.model.score_bias import ScoreBias
from heedful.model.window import check_window
from heedful.settings.registries import SCORES


@dataclass(frozen=True)
class LayerConfig:
    """Sizes and settings of all layers of a stack; the defaults are the sizes of the base model."""

    d_model: int = 512
    """Width of the states between layers."""
    d_ff: int = 2048
    """Inner width of the feed-forward network."""
    heads: int = 8
    """Number of attention heads."""
    kv_heads: int | None = None
    """Number of key-value heads, each shared by a group of query heads; `heads` if None."""
    d_k: int | None = None
    d_v: int | None = None
    """Widths of a head's keys and values; d_model / heads if None."""
    activation: str = "relu"
    """Activation of the feed-forward network."""
    gated: bool = False
    """Whether the activation of one linear layer gates a second linear layer."""
    feed_forward_bias: bool = True
    """Whether the linear layers of the feed-forward network have a bias."""
    dropout: float = 0.1
    """Dropout probability of each sub-layer's output."""
    attention_dropout: float = 0.0
    """Dropout probability of the attention weights."""
    norm: Literal["post", "pre", "pre-no-final"] = "post"
    """Order of norm and sub-layer: ``post``, ``pre``, or ``pre-no-final`` (no final norm)."""
    norm_epsilon: float = 1e-6
    """Number that norms add to the variance."""
    norm_kind: NormKind | NormFactory = "layer"
    """Layer norm, none, or a function of `d_model` and `norm_epsilon` that builds another norm."""
    residuals: bool = True
    """Whether the input of a sub-layer is added to its output."""
    causal_mask: bool = True
    """Whether a decoder hides later positions when it reads a known target."""
    projection_bias: bool = True
    """Whether the attention projections have a bias."""
    score: str = "scaled"
    """Attention score: ``scaled``, ``unscaled``, ``additive``, or the name of a plugin's score."""
    qk_norm: BuildHeadNorm | None = None
    """Builds a norm of queries or keys from `d_k` and `norm_epsilon`; None means no norm."""
    score_bias: Callable[["LayerConfig"], ScoreBias] | None = None
    """Builds the bias of the scores of self-attention in all layers; None means no bias."""
    rotation: Callable[["LayerConfig"], Rotation] | None = None
    """Builds the rotation of queries and keys in self-attention; None means no rotation."""
    relation: Callable[["LayerConfig"], Relation] | None = None
    """Builds the distance terms of self-attention's scores and contexts; None means no terms."""
    scale_output: bool = False
    """Whether a decoder multiplies its last states by d_model^-0.5."""
    mixer: Callable[["LayerConfig"], Mixer] | None = None
    """Builds the module that replaces self-attention; None keeps self-attention."""
    window: int | None = None
    """Window r of self-attention: r // 2 positions per side, or a decoder's last r; all if None."""
    networks: Networks = NO_NETWORKS
    """Networks that replace the feed-forward network in some layers."""

    def of_layer(self, number: int) -> "LayerConfig":
        """Return the settings of layer `number`, counted from 1; layers differ only in networks."""
        return self if number in self.networks.layers else replace(self, networks=NO_NETWORKS)

    def __post_init__(self) -> None:
        check_fields(self)
        check_choice("score", self.score, SCORES)
        names = ("d_model", "d_ff", "heads", "kv_heads", "d_k", "d_v", "window")
        check_counts(**{name: getattr(self, name) for name in names})
        check_window(self.window, self.causal_mask)
        positions = [
            name
            for name in ("score_bias", "rotation", "relation")
            if getattr(self, name) is not None
        ]
        if positions and (self.mixer or self.window is not None):
            excess = "mixer" if self.mixer else "window"
            raise SettingError(
                f"`{excess}` must be None if `{positions[0]}` is set, which changes the scores of "
                f"all positions, but got {getattr(self, excess)!r}."
            )

    def attention(self) -> MultiHeadAttention:
        """Build an attention sub-layer with new weights (section 3.2)."""
        attention = MultiHeadAttention(
            *(self.d_model, self.heads, self.d_k, self.d_v),
            *(self.projection_bias, self.score, self.kv_heads, self.attention_dropout),
        )
        if self.qk_norm is not None:
            factor = math.sqrt(attention.d_k) if self.score == "unscaled" else 1.0
            attention.norms = HeadNorms(self.qk_norm, attention.d_k, self.norm_epsilon, factor)
        return attention

    def self_attention(self) -> Any:
        """Build self-attention, or the `Mixer` that replaces it."""
        if self.mixer is not None:
            return self.mixer(self)
        attention = self.attention()
        attention.rotation = None if self.rotation is None else self.rotation(self)
        attention.relation = None if self.relation is None else self.relation(self)
        return attention

    def feed_forward(self) -> FeedForward | Network:
        """Build a feed-forward sub-layer, or the `Network` that replaces it."""
        if self.networks.build is not None:
            return self.networks.build(self.d_model)
        return FeedForward(
            self.d_model, self.d_ff, self.activation, self.feed_forward_bias, self.gated
        )

    def residual(self) -> nn.Module:
        """Build the residual connection, dropout and norm around a sub-layer."""
        return RESIDUALS[self.norm](
            self.d_model, self.dropout, self.norm_epsilon, self.norm_kind, self.residuals
        )

    def final_norm(self) -> nn.Module:
        """Build the last norm of a stack; the identity unless `norm` is ``pre``."""
        # Joey NMT's default encoder and early fairseq models have "pre-no-final"
        if self.norm == "pre":
            return make_norm(self.norm_kind, self.d_model, self.norm_epsilon)
        return nn.Identity()

    def output_norm(self) -> nn.Module:
        """Build the last norm of a decoder; the original T5 scales its result (`scale_output`)."""
        norm = self.final_norm()
        return ScaledNorm(norm, self.d_model**-0.5) if self.scale_output else norm


class LayerParts(NamedTuple):
    """Parts from other families in the layers of an encoder or decoder."""

    networks: Networks = NO_NETWORKS
    """Networks that replace the feed-forward network in some layers."""
    mixer: Callable[[Any], Mixer] | None = None
    """Builds, from a `LayerConfig`, the module that replaces self-attention in all layers."""
    norm: Callable[[int, float], nn.Module] | None = None
    """Builds, from the width and the epsilon, the norm that replaces layer norm."""
    qk_norm: BuildHeadNorm | None = None
    """Builds a norm of queries or keys from the width of a head and the epsilon."""
    score_bias: Callable[[Any], ScoreBias] | None = None
    """Builds the bias of the scores of self-attention in all layers from a `LayerConfig`."""
    rotation: Callable[[Any], Rotation] | None = None
    """Builds the rotation of queries and keys in a layer's self-attention from a `LayerConfig`."""
    relation: Callable[[Any], Relation] | None = None
    """Builds the distance terms of a layer's scores and contexts from a `LayerConfig`."""


NO_PARTS = LayerParts()
