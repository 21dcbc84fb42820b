"""What the layers of a stack look like, and the parts that they are made of."""

from dataclasses import dataclass

from torch import nn

from heedful.model.attention import MultiHeadAttention
from heedful.model.feed_forward import FeedForward
from heedful.model.residual import RESIDUALS


@dataclass(frozen=True)
class LayerConfig:
    """
    Say what the layers of a stack look like.

    Attributes
    ----------
    d_model : int
        Width of the states between layers.
    d_ff : int
        Inner width of the feed-forward network.
    heads : int
        Attention heads.
    d_k, d_v : int, optional
        Width of a head's keys and values; d_model / heads when absent.
    activation : str, default 'relu'
        Of the feed-forward network.
    dropout : float, default 0.1
        On the output of each sub-layer.
    norm : {'post', 'pre', 'open'}, default 'post'
        Where the residual wiring normalises; open means pre without the norm at the end.
    norm_epsilon : float, default 1e-6
        Added to the variance.
    projection_bias : bool, default True
        Whether the attention projections have a bias.

    Notes
    -----
    The defaults are those of the paper's base model.
    """

    d_model: int
    d_ff: int
    heads: int
    d_k: int | None = None
    d_v: int | None = None
    activation: str = "relu"
    dropout: float = 0.1
    norm: str = "post"
    norm_epsilon: float = 1e-6
    projection_bias: bool = True

    def attention(self) -> MultiHeadAttention:
        """
        Make an attention sub-layer.

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
        Make a feed-forward sub-layer.

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
        Make the wiring around one sub-layer.

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
        Make what stands at the end of a stack.

        Returns
        -------
        LayerNorm or Identity
            A norm where the layers leave their sums as they are.

        Notes
        -----
        The paper's stacks end in a normalised sum and need no further norm. Stacks of “pre” that
        end without one exist: Joey NMT's encoder by default, and the first ones of fairseq.
        """
        if self.norm == "pre":
            return nn.LayerNorm(self.d_model, eps=self.norm_epsilon)
        return nn.Identity()
