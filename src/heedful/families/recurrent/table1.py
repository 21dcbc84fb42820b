"""An LSTM as a row of Table 1."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.families.recurrent.cells import RecurrentLayer
from heedful.families.table1 import LayerKind, LayerSizes, States

# Matrix multiplications of an LSTM: each of its four gates multiplies the input and the state.
_PRODUCTS = 8


class RecurrenceUnderTest(nn.Module):
    """An LSTM layer that reads from left to right."""

    def __init__(self, s: LayerSizes) -> None:
        super().__init__()
        self.layer = RecurrentLayer("lstm", s.d, s.d)

    def forward(self, x: States) -> States:
        """Run the layer as a model does."""
        return self.layer(x, x.new_ones(x.shape[:2], dtype=torch.bool))[0]

    def unrolled(self, x: States, joined: int | None = None) -> Float[Tensor, "batch width"]:
        """Run step by step to the last state; gradients flow through the last `joined` steps."""
        gates = self.layer.project(x)  # (batch, time, gates)
        state = self.layer.zero_state(len(x), x)
        for time in range(x.size(1)):
            if joined is not None and time == x.size(1) - joined:
                state = tuple(part.detach() for part in state)
            state = self.layer.step(gates[:, time], state)
        return state[0]


LAYER = LayerKind(
    "recurrent",
    "n · d²",
    "n",
    "n",
    lambda s: s.n * s.d**2,
    lambda s: _PRODUCTS * s.n * s.d**2,
    lambda s, causal: s.n,
    RecurrenceUnderTest,
)
