"""The sizes of a layer and the sub-layers built from them."""

from dataclasses import dataclass

from torch import nn

from heedful.model.attention import MultiHeadAttention
from heedful.model.feed_forward import FeedForward
from heedful.model.residual import RESIDUALS


@dataclass(frozen=True)
class LayerConfig:
    """
    Sizes and choices shared by all layers of a stack.

    Notes
    -----
    The defaults are those of the paper's base model.
    """

    d_model: int
    """Width of the states between layers."""
    d_ff: int
    """Inner width of the feed-forward network."""
    heads: int
    """Attention heads."""
    d_k: int | None = None
    d_v: int | None = None
    """Width of a head's keys and values; d_model / heads if None."""
    activation: str = "relu"
    """Activation of the feed-forward network."""
    dropout: float = 0.1
    """Dropout probability of each sub-layer's output."""
    norm: str = "post"
    """``post``, ``pre``, or ``pre-no-final``: pre without the stack's final norm."""
    norm_epsilon: float = 1e-6
    """Added to the variance."""
    projection_bias: bool = True
    """Whether the attention projections have a bias."""

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
            self.d_model, self.heads, self.d_k, self.d_v, bias=self.projection_bias
        )

    def feed_forward(self) -> FeedForward:
        """
        Build a feed-forward sub-layer.

        Returns
        -------
        FeedForward
            With fresh weights.

        Notes
        -----
        Section 3.3.
        """
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
        return RESIDUALS[self.norm](self.d_model, self.dropout, self.norm_epsilon)

    def final_norm(self) -> nn.Module:
        """
        Build the last normalisation of a stack.

        Returns
        -------
        LayerNorm or Identity
            A norm after pre-norm layers, else the identity.

        Notes
        -----
        Post-norm stacks end normalised and need no final norm. Pre-norm stacks without a final norm
        exist: Joey NMT's encoder by default, and early fairseq models.
        """
        if self.norm == "pre":
            return nn.LayerNorm(self.d_model, eps=self.norm_epsilon)
        return nn.Identity()
