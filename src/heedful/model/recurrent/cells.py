"""
Recurrent layers: LSTM, GRU and plain cells, whole sequences or one step.

Cells are torch's, gate by gate and bias by bias: weights of `torch.nn.LSTM`, `GRU` and `RNN` are
the same tensors in the same order. A GRU resets after the product, as torch and cuDNN do; Cho et
al. (2014) and Bahdanau et al. (2015) reset before it.
"""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from heedful.model.cpu.linear import linear
from heedful.model.memory import FinalState

Cell = Literal["lstm", "gru", "rnn"]
CellState = tuple[Tensor, ...]
"""h, and c of an LSTM, each of shape (rows, width)."""
CELLS: dict[str, Callable[..., nn.RNNBase]] = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}


class RecurrentLayer(nn.Module):
    """
    One layer of recurrent cells, forwards or in both directions.

    Holds torch's own module. Whole sequences run in torch's fused kernel; `project` and `step` are
    its two halves for a decoder, so that products with known inputs are one large product.
    """

    def __init__(self, cell: Cell, inputs: int, width: int, bidirectional: bool = False) -> None:
        super().__init__()
        self.cell, self.width = cell, width
        self.rnn: nn.RNNBase = CELLS[cell](
            inputs, width, batch_first=True, bidirectional=bidirectional
        )

    def forward(
        self, x: Float[Tensor, "batch time inputs"], mask: Bool[Tensor, "batch time"]
    ) -> tuple[Float[Tensor, "batch time outputs"], FinalState]:
        """
        Run whole sequences of different lengths from a zero state.

        `mask`: true at real positions, which come first and are at least one a row. Returns h of
        each position, both directions side by side, zero at padding; and the last states.

        Packed, so that neither direction ever reads padding.
        """
        lengths = mask.sum(dim=1).clamp(min=1).cpu()
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        packed_out, last = self.rnn(packed)
        outputs, _ = pad_packed_sequence(packed_out, batch_first=True, total_length=x.size(1))
        states = last if isinstance(last, tuple) else (last,)  # each (directions, batch, width)
        backward = tuple(state[1] for state in states) if self.rnn.bidirectional else None
        return outputs, FinalState(tuple(state[0] for state in states), backward)

    def zero_state(self, rows: int, like: Tensor) -> CellState:
        """Return the state before the first step; one tensor may stand for h and c."""
        zero = like.new_zeros(rows, self.width)
        return (zero, zero) if self.cell == "lstm" else (zero,)

    def project(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch gates"]:
        """Compute the input's part of all gates, in torch's order: i f g o, or r z n."""
        return linear(x, self.rnn.weight_ih_l0, self.rnn.bias_ih_l0)  # type: ignore[arg-type]

    def input_parts(self, first: int) -> tuple[Tensor, Tensor, Tensor]:
        """Split the input weights behind the first columns, for inputs that are known earlier."""
        weight: Tensor = self.rnn.weight_ih_l0  # type: ignore[assignment]
        return weight[:, :first].contiguous(), weight[:, first:].contiguous(), self.rnn.bias_ih_l0  # type: ignore[return-value]

    def step(self, gates: Float[Tensor, "rows gates"], state: CellState) -> CellState:
        """Compute the next state from the input's part of all gates; its first tensor is h."""
        hidden = linear(state[0], self.rnn.weight_hh_l0, self.rnn.bias_hh_l0)  # type: ignore[arg-type]
        if self.cell == "lstm":
            i, f, g, o = (gates + hidden).chunk(4, dim=1)  # each (rows, width)
            c = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
            return torch.sigmoid(o) * torch.tanh(c), c
        if self.cell == "gru":
            r, z, n = gates.chunk(3, dim=1)  # each (rows, width)
            hidden_r, hidden_z, hidden_n = hidden.chunk(3, dim=1)
            new = torch.tanh(n + torch.sigmoid(r + hidden_r) * hidden_n)
            return (torch.lerp(new, state[0], torch.sigmoid(z + hidden_z)),)
        return (torch.tanh(gates + hidden),)


def reverse(
    x: Float[Tensor, "batch time *rest"], mask: Bool[Tensor, "batch time"]
) -> Float[Tensor, "batch time *rest"]:
    """Reverse the real positions of each row; padding stays at the end."""
    places = torch.arange(x.size(1), device=x.device)  # (time,)
    lengths = mask.sum(dim=1, keepdim=True)  # (batch, 1)
    source = torch.where(places < lengths, lengths - 1 - places, places)  # (batch, time)
    return x[torch.arange(len(x), device=x.device).unsqueeze(1), source]


def first_half(gates: Float[Tensor, "*batch gates"]) -> Float[Tensor, "*batch half"]:
    """
    Keep the first half of the input's part of all gates, for a fast-forward connection.

    Zhou et al. 2016, section 3.1: no gate and no state has touched it, so a linear path leads
    through all layers.
    """
    return gates[..., : gates.size(-1) // 2]
