"""
Residual connections and layer normalisation around a sub-layer.

The paper normalises after the sum, ``LayerNorm(x + Dropout(Sublayer(x)))`` (sections 3.1 and 5.4).
Its authors' code later normalised before the sub-layer; that needs one more norm at the end of the
stack and trains deep stacks more easily.
"""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from heedful.model.cpu.dropout import Dropout

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

    Notes
    -----
    Sections 3.1 and 5.4: ``LayerNorm(x + Dropout(Sublayer(x)))``.
    """

    def __init__(self, d_model: int, dropout: float, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=epsilon)
        self.dropout = Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "batch time d_model"], sublayer: Sublayer
    ) -> Float[Tensor, "batch time d_model"]:
        """
        Run the sub-layer, add its input and normalise.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            States.
        sublayer : callable
            Maps states to states of the same shape.

        Returns
        -------
        Tensor of float, shape (batch, time, d_model)
            Normalised sum.

        Notes
        -----
        The output is normalised, so no norm is needed at the end of a stack.
        """
        out: Tensor = self.norm(self.dropout.add(x, sublayer(x)))
        return out


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

    Notes
    -----
    ``x + Dropout(Sublayer(LayerNorm(x)))``, tensor2tensor since October 2017 (d5bdfcc8).
    """

    def __init__(self, d_model: int, dropout: float, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=epsilon)
        self.dropout = Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "batch time d_model"], sublayer: Sublayer
    ) -> Float[Tensor, "batch time d_model"]:
        """
        Normalise, run the sub-layer and add its input.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            States.
        sublayer : callable
            Maps states to states of the same shape.

        Returns
        -------
        Tensor of float, shape (batch, time, d_model)
            The sum, not normalised.

        Notes
        -----
        The stack must normalise its last output.
        """
        return self.dropout.add(x, sublayer(self.norm(x)))


RESIDUALS: dict[str, type[PostNorm] | type[PreNorm]] = {
    "post": PostNorm,
    "pre": PreNorm,
    "pre-no-final": PreNorm,
}
"""The wirings by name; “pre-no-final” is “pre” in a stack without a final layer norm."""
