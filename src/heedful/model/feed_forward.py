"""The position-wise feed-forward network: section 3.3 of the paper."""

from collections.abc import Callable
from typing import ClassVar

from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.arguments import check_choice, check_counts, checked
from heedful.kernels.api import Linear
from heedful.model.layout import check_states
from heedful.model.parts import Network


def gelu_tanh(x: Tensor) -> Tensor:
    """Apply GELU, approximated with tanh."""
    return nn.functional.gelu(x, approximate="tanh")


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": nn.functional.relu,
    "gelu": nn.functional.gelu,
    "gelu_tanh": gelu_tanh,
    "silu": nn.functional.silu,
}


class FeedForward(nn.Module):
    """
    The position-wise feed-forward network ``max(0, x W_1 + b_1) W_2 + b_2`` (equation 2).

    Parameters
    ----------
    d_model : int
        Width of inputs and output.
    d_ff : int
        Width of the inner layer.
    activation : {'relu', 'gelu', 'gelu_tanh', 'silu'}, default 'relu'
        The activation between the two linear layers; the paper uses relu.
    bias : bool, default True
        Whether both linear layers have a bias, as in equation 2.
    gated : bool, default False
        Whether the activation of one projection of the input gates a second projection:
        ``(activation(x W) * (x V)) W_2`` (Shazeer 2020). The weight of `linear1` stacks W and V.
    """

    computes_padding: ClassVar[bool] = True
    """Whether the network also processes padding positions, if padding was not removed."""

    @checked
    def __init__(
        self,
        d_model: int,
        d_ff: int,
        activation: str = "relu",
        bias: bool = True,
        gated: bool = False,
    ) -> None:
        super().__init__()
        check_counts(d_model=d_model, d_ff=d_ff)
        check_choice("activation", activation, ACTIVATIONS)
        self.d_model, self.gated = d_model, gated
        self.linear1 = Linear(d_model, 2 * d_ff if gated else d_ff, bias)
        self.linear2 = Linear(d_ff, d_model, bias)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Apply the network, with the same weights at every position."""
        check_states("FeedForward", self.d_model, x=x)
        if self.gated:
            gate, value = self.linear1(x).chunk(2, dim=-1)  # (..., d_ff) each
            return self._last(self.activation(gate) * value)
        is_relu = self.activation is ACTIVATIONS["relu"]
        inner = self.linear1(x, relu=is_relu)
        return self._last(inner if is_relu else self.activation(inner))

    def _last(self, inner: Tensor) -> Tensor:
        return self.linear2(inner)

    def flops(self, positions: int = 1) -> int:
        """Count two operations for each weight of the linear layers at each position."""
        return 2 * positions * (self.linear1.weight.numel() + self.linear2.weight.numel())


def apply_network(
    network: nn.Module, x: Float[Tensor, "*batch d_model"], real: Bool[Tensor, "*batch"] | None
) -> Float[Tensor, "*batch d_model"]:
    """Apply a feed-forward network, or a `Network`, which needs to know the real positions."""
    return network(x, real) if isinstance(network, Network) else network(x)
