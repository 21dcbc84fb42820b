"""
Residual connections and normalisation around a sub-layer.

The paper normalises after the sum, ``LayerNorm(x + Dropout(Sublayer(x)))`` (sections 3.1 and 5.4).
Its authors' code later normalised before the sub-layer; that needs one more norm at the end of the
stack and trains deep stacks more easily.
"""

from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.kernels.api import Dropout
from heedful.model.norm import NormFactory, NormKind, make_norm, normalise

Sublayer = Callable[[Tensor], Tensor]


class PostNorm(nn.Module):
    """
    Normalisation after the sum, as in the paper (post-norm).

    Parameters
    ----------
    d_model : int
        Width of the states.
    dropout : float
        Dropout probability of the sub-layer's output.
    epsilon : float, default 1e-6
        Added to the variance; 1e-6 is from the authors' code, the paper gives none.
    norm_kind : {'layer', 'none'} or callable, default 'layer'
        What normalises, or what builds it from `d_model` and `epsilon`.
    residual : bool, default True
        Whether the input is added; without it, for teaching, only the sub-layer's output goes on.

    Notes
    -----
    Sections 3.1 and 5.4: ``LayerNorm(x + Dropout(Sublayer(x)))``.
    """

    def __init__(
        self,
        d_model: int,
        dropout: float,
        epsilon: float = 1e-6,
        norm_kind: NormKind | NormFactory = "layer",
        residual: bool = True,
    ) -> None:
        super().__init__()
        self.norm = make_norm(norm_kind, d_model, epsilon)
        self.dropout = Dropout(dropout)
        self.residual = residual

    def forward(
        self,
        x: Float[Tensor, "batch time d_model"],
        sublayer: Sublayer,
        real: Bool[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch time d_model"]:
        """
        Run the sub-layer, add its input and normalise.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            States.
        sublayer : callable
            Maps states to states of the same shape.
        real : Tensor of bool, shape (batch, time), optional
            True at real positions, for a `PaddedNorm`; everywhere if None.

        Returns
        -------
        Tensor of float, shape (batch, time, d_model)
            Normalised sum.

        Notes
        -----
        The output is normalised, so no norm is needed at the end of a stack.
        """
        out = sublayer(x)
        out = self.dropout.add(x, out) if self.residual else self.dropout(out)
        return normalise(self.norm, out, real)


class PreNorm(nn.Module):
    """
    Normalisation before the sub-layer (pre-norm).

    Parameters
    ----------
    d_model : int
        Width of the states.
    dropout : float
        Dropout probability of the sub-layer's output.
    epsilon : float, default 1e-6
        Added to the variance.
    norm_kind : {'layer', 'none'} or callable, default 'layer'
        What normalises, or what builds it from `d_model` and `epsilon`.
    residual : bool, default True
        Whether the input is added; without it, for teaching, only the sub-layer's output goes on.

    Notes
    -----
    ``x + Dropout(Sublayer(LayerNorm(x)))``, tensor2tensor since October 2017 (d5bdfcc8).
    """

    def __init__(
        self,
        d_model: int,
        dropout: float,
        epsilon: float = 1e-6,
        norm_kind: NormKind | NormFactory = "layer",
        residual: bool = True,
    ) -> None:
        super().__init__()
        self.norm = make_norm(norm_kind, d_model, epsilon)
        self.dropout = Dropout(dropout)
        self.residual = residual

    def forward(
        self,
        x: Float[Tensor, "batch time d_model"],
        sublayer: Sublayer,
        real: Bool[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch time d_model"]:
        """
        Normalise, run the sub-layer and add its input.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            States.
        sublayer : callable
            Maps states to states of the same shape.
        real : Tensor of bool, shape (batch, time), optional
            True at real positions, for a `PaddedNorm`; everywhere if None.

        Returns
        -------
        Tensor of float, shape (batch, time, d_model)
            The sum, not normalised.

        Notes
        -----
        The stack must normalise its last output.
        """
        out = sublayer(normalise(self.norm, x, real))
        if self.residual:
            return self.dropout.add(x, out)
        alone: Tensor = self.dropout(out)
        return alone


RESIDUALS: dict[str, type[PostNorm] | type[PreNorm]] = {
    "post": PostNorm,
    "pre": PreNorm,
    "pre-no-final": PreNorm,
}
"""The wirings by name; “pre-no-final” is “pre” in a stack without a final layer norm."""
