"""
Recurrent encoders: one direction, two directions, or two stacks with alternating directions.

::

    forward              x ── layer ── layer ── ...
    bidirectional        x ── both directions ── both directions ── ...
    first-bidirectional  x ── both directions ── layer ── ...             (GNMT)
    interleaved          x ─┬─ forward ── backward ── forward ── ...      (Deep-Att)
                            └─ backward ── forward ── backward ── ...
"""

import torch
from torch import Tensor

from heedful.arguments import checked
from heedful.families.recurrent.cells import RecurrentLayer, first_half, reverse
from heedful.families.recurrent.stack import RecurrentStack
from heedful.families.recurrent.wiring import RecurrentWiring
from heedful.kernels.api import Dropout, Linear
from heedful.model.flops import RowLengths
from heedful.model.halves import FinalState, Memory, SourceEncoder, SourceMask, States
from heedful.model.parts import Parts


class RecurrentEncoder(RecurrentStack, SourceEncoder):
    """
    A recurrent encoder, whose directions follow one of four publications.

    Bahdanau et al. 2015 use two directions, and Sutskever et al. 2014 use one direction over the
    reversed source. Wu et al. 2016 use two directions in the first layer, and Zhou et al. 2016
    interleave two directions with fast-forward connections.
    """

    @checked
    def __init__(self, wiring: RecurrentWiring) -> None:
        super().__init__(wiring)
        self.width = wiring.output_width
        self.embedding_dropout = Dropout(wiring.embedding_dropout)
        self.columns: Parts[Parts[RecurrentLayer]] = Parts(
            Parts(_layers(wiring)) for _ in range(wiring.columns)
        )
        self.add_networks(_widths(wiring))
        self.memory_proj = None
        if wiring.fast_forward:  # to a quarter of the width (Zhou et al. 2016, section 3.2)
            tops = wiring.columns * (wiring.hidden_size + wiring.gates)
            self.memory_proj = Linear(tops, wiring.output_width)

    def encode(self, x: States, mask: SourceMask, weights: list[Tensor] | None = None) -> Memory:
        real = mask[:, 0, 0]  # (batch, time)
        x = self.embedding_dropout(x)
        if self.wiring.reverse_source:
            x = reverse(x, real)
        tops, finals = [], []
        for number, column in enumerate(self.columns):
            top, final = self._run(column, x, real, backward=number == 1)
            tops.append(top)
            finals.append(final)
        states = torch.cat(tops, dim=-1)
        if self.memory_proj is not None:
            states = self.memory_proj(states)
        if self.wiring.reverse_source:
            states = reverse(states, real)
        return Memory(states, mask, _merge(finals))

    def flops(self, source: RowLengths) -> int:
        of_rows = 0 if self.memory_proj is None else self.memory_proj.weight.numel()
        if self.wiring.fast_forward:
            # torch's fused kernel does not return the projected inputs, so they are computed again
            layers = (layer for column in self.columns for layer in column)
            of_rows += sum(layer.rnn.weight_ih_l0.numel() for layer in layers)  # type: ignore[operator,misc]
        return self.flops_of_layers(self.columns, source) + 2 * of_rows * int(source.places.sum())

    def _run(
        self, column: Parts[RecurrentLayer], x: Tensor, real: Tensor, backward: bool
    ) -> tuple[Tensor, list[FinalState]]:
        """Run one column; in an interleaved encoder, the direction alternates between layers."""
        finals, known = [], None
        interleaved = self.wiring.direction == "interleaved"
        for number, layer in enumerate(column, start=1):
            flip = interleaved and (number % 2 == 0) != backward
            read = x if number == 1 else self.layer_dropout(x)
            if known is not None:
                read = torch.cat([read, first_half(known)], dim=-1)
            read = reverse(read, real) if flip else read
            out, final = layer(read, real)
            finals.append(FinalState(None, final.forward) if flip else final)
            if self.wiring.fast_forward:
                known = layer.product(read)  # (batch, time, gates)
                known = reverse(known, real) if flip else known
            out = reverse(out, real) if flip else out
            x = self.mix(number, self.add_residual(number, out, x), real)
        return x if known is None else torch.cat([x, known], dim=-1), finals


def _layers(wiring: RecurrentWiring) -> list[RecurrentLayer]:
    """Build the layers of one column."""
    inputs = [wiring.d_model, *(wiring.inputs_above(width) for width in _widths(wiring)[:-1])]
    return [
        RecurrentLayer(wiring.cell, width, wiring.hidden_size, two, wiring.projection_size)
        for width, two in zip(inputs, _is_bidirectional(wiring), strict=True)
    ]


def _widths(wiring: RecurrentWiring) -> list[int]:
    """List the widths of the outputs of the layers of one column."""
    return [wiring.state_width * (2 if two else 1) for two in _is_bidirectional(wiring)]


def _is_bidirectional(wiring: RecurrentWiring) -> list[bool]:
    """Return for each layer of one column whether it reads in both directions."""
    return [
        wiring.direction == "bidirectional"
        or (wiring.direction == "first-bidirectional" and number == 0)
        for number in range(wiring.layers)
    ]


def _merge(columns: list[list[FinalState]]) -> tuple[FinalState, ...]:
    """Join the last states of the columns; each column gives one direction of a layer."""
    if len(columns) == 1:
        return tuple(columns[0])
    return tuple(
        FinalState(
            first.forward or second.forward,
            first.backward or second.backward,
        )
        for first, second in zip(*columns, strict=True)
    )
