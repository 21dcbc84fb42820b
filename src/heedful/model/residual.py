"""
Residual connections and normalization around a sub-layer.

The paper normalizes after the sum, ``LayerNorm(x + Dropout(Sublayer(x)))`` (sections 3.1 and 5.4).
The authors' code later normalized before the sub-layer. Pre-norm needs one more norm at the end of
the stack, and makes deep stacks easier to train.
"""

from collections.abc import Callable
from typing import Literal

from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.kernels.api import Dropout, add_and_normalize, has_add_norm
from heedful.model.parts import PaddedNorm

States = Float[Tensor, "batch time d_model"]
Real = Bool[Tensor, "batch time"] | None

NormKind = Literal["layer", "none"]
NormFactory = Callable[[int, float], nn.Module]
"""Builds a norm from the width of the states and the epsilon that is added to the variance."""


def make_norm(kind: NormKind | NormFactory, d_model: int, epsilon: float) -> nn.Module:
    """Build a norm; ``none`` gives the identity."""
    if callable(kind):
        return kind(d_model, epsilon)
    return nn.LayerNorm(d_model, eps=epsilon) if kind == "layer" else nn.Identity()


def normalize(norm: nn.Module, x: States, real: Real) -> States:
    """Apply a norm of any kind; only a `PaddedNorm` needs to know which positions are real."""
    return norm(x, real) if isinstance(norm, PaddedNorm | ScaledNorm) else norm(x)


class ScaledNorm(nn.Module):
    """A stack's last norm, times a constant: d_model^-0.5 in T5 models with a tied output."""

    def __init__(self, norm: nn.Module, factor: float) -> None:
        super().__init__()
        self.norm, self.factor = norm, factor

    def forward(self, x: States, real: Real = None) -> States:
        """Normalize and scale. `real`: true at positions that are not padding."""
        return normalize(self.norm, x, real) * self.factor


Sublayer = Callable[[Tensor], Tensor]


class Residual(nn.Module):
    """
    Residual connection and normalization around a sub-layer; subclasses determine the order.

    The default `epsilon` of 1e-6 is from the authors' code; the paper gives no value. If `residual`
    is false (for teaching), the input of the sub-layer is not added.
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

    def add(self, x: States, out: States) -> States:
        """Apply dropout to the sub-layer's output `out` and add its input `x`."""
        return self.dropout.add(x if self.residual else None, out)


class PostNorm(Residual):
    """Normalization after the sum, as in the paper: ``LayerNorm(x + Dropout(Sublayer(x)))``."""

    def forward(self, x: States, sublayer: Sublayer, real: Real = None) -> States:
        """Run the sub-layer, add its input and normalize. `real`: true at real tokens."""
        if x.is_cuda and self.residual and has_add_norm(x, self.norm):
            return add_and_normalize(x, sublayer(x), self.dropout.present_probability, self.norm)
        return normalize(self.norm, self.add(x, sublayer(x)), real)


class PreNorm(Residual):
    """
    Normalization before the sub-layer: ``x + Dropout(Sublayer(LayerNorm(x)))``.

    tensor2tensor has had this order since October 2017 (d5bdfcc8). The stack then normalizes its
    last output, except with “pre-no-final”.
    """

    def forward(self, x: States, sublayer: Sublayer, real: Real = None) -> States:
        """Normalize `x`, run the sub-layer on it, and add `x`. `real`: true at real tokens."""
        return self.add(x, sublayer(normalize(self.norm, x, real)))


RESIDUALS = {"post": PostNorm, "pre": PreNorm, "pre-no-final": PreNorm}
"""Residual classes by name; “pre-no-final” is “pre” in a stack without a final layer norm."""
