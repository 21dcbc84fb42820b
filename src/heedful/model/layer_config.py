"""The sizes of a layer and the sub-layers built from them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from torch import nn

from heedful.arguments import check_choice, check_counts, check_fields
from heedful.model.attention import MultiHeadAttention
from heedful.model.feed_forward import FeedForward
from heedful.model.parts import NO_NETWORKS, Mixer, Network, Networks
from heedful.model.residual import RESIDUALS, NormFactory, NormKind, make_norm
from heedful.model.window import check_window
from heedful.settings.registries import SCORES


@dataclass(frozen=True)
class LayerConfig:
    """
    Sizes and choices shared by all layers of a stack.

    Notes
    -----
    The defaults are those of the paper's base model.
    """

    d_model: int = 512
    """Width of the states between layers."""
    d_ff: int = 2048
    """Inner width of the feed-forward network."""
    heads: int = 8
    """Attention heads."""
    d_k: int | None = None
    d_v: int | None = None
    """Width of a head's keys and values; d_model / heads if None."""
    activation: str = "relu"
    """Activation of the feed-forward network."""
    dropout: float = 0.1
    """Dropout probability of each sub-layer's output."""
    norm: Literal["post", "pre", "pre-no-final"] = "post"
    """``post``, ``pre``, or ``pre-no-final``: pre without the stack's final norm."""
    norm_epsilon: float = 1e-6
    """Added to the variance."""
    norm_kind: NormKind | NormFactory = "layer"
    """Layer norm, none, or what builds another one from `d_model` and `norm_epsilon`."""
    residuals: bool = True
    """Whether the input of a sub-layer is added to its output."""
    causal_mask: bool = True
    """Whether a decoder hides later positions when it reads a known target."""
    projection_bias: bool = True
    """Whether the attention projections have a bias."""
    score: str = "scaled"
    """``scaled``, ``unscaled``, ``additive``, or one of a plugin: how attention compares."""
    mixer: Callable[["LayerConfig"], Mixer] | None = None
    """Builds what takes the place of self-attention; None means nothing."""
    window: int | None = None
    """Neighbours that self-attention is restricted to; None means none."""
    networks: Networks = NO_NETWORKS
    """What stands in the place of the feed-forward network in some layers."""

    def of_layer(self, number: int) -> "LayerConfig":
        """
        Return the choices of one layer.

        Parameters
        ----------
        number : int
            The layer, from 1.

        Returns
        -------
        LayerConfig
            With its own feed-forward network if no other one takes its place.

        Notes
        -----
        Everything else is the same in all layers.
        """
        return self if number in self.networks.layers else replace(self, networks=NO_NETWORKS)

    def __post_init__(self) -> None:
        check_fields(self)
        check_choice("score", self.score, SCORES)
        names = ("d_model", "d_ff", "heads", "d_k", "d_v", "window")
        check_counts(**{name: getattr(self, name) for name in names})
        check_window(self.window, self.causal_mask)

    def attention(self) -> MultiHeadAttention:
        """
        Build an attention sub-layer.

        Returns
        -------
        MultiHeadAttention
            With fresh weights.

        Notes
        -----
        Section 3.2.
        """
        return MultiHeadAttention(
            self.d_model, self.heads, self.d_k, self.d_v, self.projection_bias, self.score
        )

    def self_attention(self) -> Any:
        """
        Build what mixes the positions of a sequence.

        Returns
        -------
        MultiHeadAttention or Mixer
            With fresh weights.

        Notes
        -----
        Section 3.2.3; a `Mixer` takes its place.
        """
        return self.attention() if self.mixer is None else self.mixer(self)

    def feed_forward(self) -> FeedForward | Network:
        """
        Build a feed-forward sub-layer.

        Returns
        -------
        FeedForward or Network
            With fresh weights.

        Notes
        -----
        Section 3.3; a `Network` takes its place.
        """
        if self.networks.build is not None:
            return self.networks.build(self.d_model)
        return FeedForward(self.d_model, self.d_ff, self.activation)

    def residual(self) -> nn.Module:
        """
        Build the residual connection and normalisation around a sub-layer.

        Returns
        -------
        PostNorm or PreNorm
            With fresh weights.

        Notes
        -----
        Sections 3.1 and 5.4.
        """
        return RESIDUALS[self.norm](
            self.d_model, self.dropout, self.norm_epsilon, self.norm_kind, self.residuals
        )

    def final_norm(self) -> nn.Module:
        """
        Build the last normalisation of a stack.

        Returns
        -------
        Module
            A norm after pre-norm layers, else the identity.

        Notes
        -----
        Post-norm stacks end normalised and need no final norm. Pre-norm stacks without a final norm
        exist: Joey NMT's encoder by default, and early fairseq models.
        """
        if self.norm == "pre":
            return make_norm(self.norm_kind, self.d_model, self.norm_epsilon)
        return nn.Identity()
