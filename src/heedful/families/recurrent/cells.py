"""
Recurrent layers: LSTM, GRU and plain cells, for whole sequences or one step.

Cells are torch's, gate by gate and bias by bias: weights of `torch.nn.LSTM`, `GRU` and `RNN` are
the same tensors in the same order. A GRU applies its reset gate after the matrix multiplication, as
in torch and cuDNN; in Cho et al. (2014) and Bahdanau et al. (2015), the gate is applied first.
"""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from heedful.families.recurrent.products import PLAIN, LoopProducts, StepProducts
from heedful.kernels.api import (
    can_flatten,
    flatten_weights,
    linear,
    lstm_cell,
    wants_flat_weights,
)
from heedful.model.halves import FinalState

Cell = Literal["lstm", "gru", "rnn"]
CellState = tuple[Tensor, ...]
"""The state of a layer: h (rows, state_width), and c of an LSTM (rows, width)."""
CELLS: dict[str, Callable[..., nn.RNNBase]] = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}


class RecurrentLayer(nn.Module):
    """
    One layer of recurrent cells, forward or in both directions.

    It contains torch's own module. `run` takes complete sequences. A decoder calls `project` and
    then `step` instead, so that known inputs need only one large matrix multiplication.
    """

    def __init__(
        self,
        cell: Cell,
        inputs: int,
        width: int,
        bidirectional: bool = False,
        projection: int | None = None,
    ) -> None:
        super().__init__()
        self.cell, self.width = cell, width
        self.state_width = projection or width  # of h, which Sak et al. 2014 project
        projected = {} if projection is None else {"proj_size": projection}
        self.rnn: nn.RNNBase = CELLS[cell](
            inputs, width, batch_first=True, bidirectional=bidirectional, **projected
        )
        self._pointers: list[int] = []  # addresses of the weights that are laid out for cuDNN

    def forward(
        self, x: Float[Tensor, "batch time inputs"], mask: Bool[Tensor, "batch time"]
    ) -> tuple[Float[Tensor, "batch time outputs"], FinalState]:
        """
        Run whole sequences of different lengths from a zero state.

        `mask`: true at real positions, which come first; each row has at least one. Returns h of
        each position, with both directions concatenated and zeros at padding, and the last states.

        Sequences are packed, so neither direction reads padding.
        """
        packed_out, directions = self.run(pack(x, mask))
        forward, backward = (*directions, None) if len(directions) == 1 else directions
        return unpack(packed_out, x.size(1)), FinalState(forward, backward)

    def run(
        self, packed: PackedSequence, first: CellState | None = None
    ) -> tuple[PackedSequence, list[CellState]]:
        """
        Run packed sequences, whose rows `pack` has sorted, from a state or from zero.

        Returns h of each token, with both directions concatenated. Also returns the last states of
        each direction, in the order of the rows before packing.
        """
        data, sizes, order, back = packed
        rows = int(sizes[0])
        state = self.zero_state(rows, data) if first is None else first
        if first is not None and order is not None:
            state = tuple(part[order] for part in first)
        projects = self.state_width != self.width  # torch too runs these step by step
        on_cpu, learns = data.device.type == "cpu", torch.is_grad_enabled()
        # cuDNN computes gradients only in training mode
        if (
            (on_cpu and (learns or projects))
            or (learns and not self.training)
            or not can_flatten(data.device)
        ):
            suffixes = ("", "_reverse") if self.rnn.bidirectional else ("",)
            runs = [self._run_steps(data, sizes.tolist(), state, suffix) for suffix in suffixes]
            out = torch.cat([run[0] for run in runs], dim=1)
            lasts = [run[1] for run in runs]
        else:
            ways = 2 if self.rnn.bidirectional else 1
            self._flatten(data)
            initial = tuple(part.expand(ways, *part.shape).contiguous() for part in state)
            out, last, *_ = self.rnn(
                PackedSequence(data, sizes), initial if len(initial) > 1 else initial[0]
            )
            out, last = out.data, last if isinstance(last, tuple) else (last,)
            lasts = [tuple(part[way] for part in last) for way in range(ways)]
        if back is not None:
            lasts = [tuple(part[back] for part in last) for last in lasts]
        return packed._replace(data=out), lasts

    def _flatten(self, data: Tensor) -> None:
        """
        Store the weights in one block of memory for cuDNN, unless they already are in one block.

        `torch.nn.RNNBase.flatten_parameters` does so when a module is moved, but not in bf16, and
        not when an optimizer replaces the data of its weights.
        """
        if data.device.type != "cuda" or not wants_flat_weights():
            return
        weights = [*self.rnn.parameters()]
        if [weight.data_ptr() for weight in weights] == self._pointers:
            return
        flatten_weights(self.rnn, self.cell)
        self._pointers = [weight.data_ptr() for weight in weights]

    def _run_steps(
        self, data: Tensor, sizes: list[int], first: CellState, suffix: str
    ) -> tuple[Tensor, CellState]:
        """
        Run one direction as torch's module does, position by position, with cheaper gradients.

        `data`: shape (tokens, inputs); `sizes`: number of rows at each position, in descending
        order. On a CPU, torch's own backward pass fills and adds, at each position, a matrix as
        large as the gates of all positions.
        """
        products = LoopProducts() if torch.is_grad_enabled() else PLAIN
        weights = dict(self.rnn.named_parameters())
        gates = linear(data, weights[f"weight_ih_l0{suffix}"], weights[f"bias_ih_l0{suffix}"])
        hidden = (
            weights[f"weight_hh_l0{suffix}"],
            weights[f"bias_hh_l0{suffix}"],
            weights.get(f"weight_hr_l0{suffix}"),
        )
        times = [*zip(gates.split(sizes), sizes, strict=True)]
        times = times[::-1] if suffix else times
        state = tuple(part[: times[0][1]] for part in first)
        outputs, ended = [], []
        for gate, rows in times:
            before = len(state[0])
            if rows < before:
                pairs = [part.split([rows, before - rows]) for part in state]
                state = tuple(pair[0] for pair in pairs)
                ended.append([pair[1] for pair in pairs])
            elif rows > before:
                begun = [part[before:rows] for part in first]
                state = tuple(map(torch.cat, zip(state, begun, strict=True)))
            state = self._advance(gate, state, hidden, products)
            outputs.append(state[0])
        last = tuple(map(torch.cat, zip(state, *reversed(ended), strict=True)))
        return torch.cat(outputs[::-1] if suffix else outputs), last

    def zero_state(self, rows: int, like: Tensor) -> CellState:
        """Return the state before the first step; h and c may be the same tensor."""
        zero = like.new_zeros(rows, self.state_width)
        if self.cell != "lstm":
            return (zero,)
        return zero, zero if self.state_width == self.width else like.new_zeros(rows, self.width)

    def project(
        self, x: Float[Tensor, "*batch inputs"], products: StepProducts = PLAIN
    ) -> Float[Tensor, "*batch gates"]:
        """Compute the input's contribution to all gates, in torch's order: i f g o, or r z n."""
        return products.linear(x, self.rnn.weight_ih_l0, self.rnn.bias_ih_l0)  # type: ignore[arg-type]

    def product(
        self, x: Float[Tensor, "*batch inputs"], products: StepProducts = PLAIN
    ) -> Float[Tensor, "*batch gates"]:
        """
        Compute `project` without the bias; a fast-forward layer passes the result on.

        If the bias were included, a forget gate's bias of 1 would hide differences between words.
        """
        return products.linear(x, self.rnn.weight_ih_l0)  # type: ignore[arg-type]

    def add_bias(self, product: Float[Tensor, "*batch gates"]) -> Float[Tensor, "*batch gates"]:
        """Add the bias to the result of `product`; the sum is the result of `project`."""
        return product + self.rnn.bias_ih_l0  # type: ignore[operator]

    def input_parts(self, first: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return the input weights of the first columns and of all other columns, and the bias."""
        weight: Tensor = self.rnn.weight_ih_l0  # type: ignore[assignment]
        return weight[:, :first].contiguous(), weight[:, first:].contiguous(), self.rnn.bias_ih_l0  # type: ignore[return-value]

    def step(
        self, gates: Float[Tensor, "rows gates"], state: CellState, products: StepProducts = PLAIN
    ) -> CellState:
        """Compute the next state (h comes first) from the input's contribution to all gates."""
        projection = getattr(self.rnn, "weight_hr_l0", None)
        weights = self.rnn.weight_hh_l0, self.rnn.bias_hh_l0, projection
        return self._advance(gates, state, weights, products)  # type: ignore[arg-type]

    def _advance(
        self,
        gates: Tensor,
        state: CellState,
        weights: tuple[Tensor, Tensor, Tensor | None],
        products: StepProducts,
    ) -> CellState:
        """Compute the next state of one direction."""
        weight, bias, projection = weights
        hidden = products.linear(state[0], weight, bias)
        if self.cell == "lstm":
            h, c = lstm_cell(gates, hidden, state[1])
            return h if projection is None else products.linear(h, projection), c
        if self.cell == "gru":
            r, z, n = gates.chunk(3, dim=1)  # each (rows, width)
            hidden_r, hidden_z, hidden_n = hidden.chunk(3, dim=1)
            new = torch.tanh(n + torch.sigmoid(r + hidden_r) * hidden_n)
            return (torch.lerp(new, state[0], torch.sigmoid(z + hidden_z)),)
        return (torch.tanh(gates + hidden),)


def pack(x: Float[Tensor, "batch time *rest"], mask: Bool[Tensor, "batch time"]) -> PackedSequence:
    """Sort rows by length and order real positions by time; an empty row keeps one position."""
    lengths = mask.sum(dim=1).clamp(min=1).cpu()
    return pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)


def unpack(packed: PackedSequence, time: int) -> Float[Tensor, "batch time *rest"]:
    """Restore positions to their order before `pack`, with zeros at padding."""
    return pad_packed_sequence(packed, batch_first=True, total_length=time)[0]


def reverse(
    x: Float[Tensor, "batch time *rest"], mask: Bool[Tensor, "batch time"]
) -> Float[Tensor, "batch time *rest"]:
    """Reverse the real positions of each row; padding stays at the end."""
    places = torch.arange(x.size(1), device=x.device)  # (time,)
    lengths = mask.sum(dim=1, keepdim=True)  # (batch, 1)
    source = torch.where(places < lengths, lengths - 1 - places, places)  # (batch, time)
    return x[torch.arange(len(x), device=x.device).unsqueeze(1), source]


def first_half(product: Float[Tensor, "*batch gates"]) -> Float[Tensor, "*batch half"]:
    """
    Return the first half of the projected input, for a fast-forward connection.

    No gate or state changes this half, so a linear path leads through all layers (Zhou et al. 2016,
    section 3.1).
    """
    return product[..., : product.size(-1) // 2]
