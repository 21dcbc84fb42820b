"""
Recurrent decoders: one class for the different designs in the literature.

::

    query = "current" (Luong et al. 2015)          query = "previous" (Bahdanau et al. 2015)

    1. layers read y and the fed vector            1. the bottom state of the last step attends
    2. their top state attends: context c          2. layers read y and the context c
    3. readout of state and c                      3. readout of state and c
    4. c or the readout is fed to step t + 1

Known targets go through the same steps as in a search, position by position. Projections of
embeddings, and readouts that are not fed back, are computed for all positions at once. So are upper
layers if only the bottom layer gives the query and reads the context. A decoder without feedback
runs its layers one after the other over all positions, and all queries attend at once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from heedful.arguments import checked
from heedful.families.recurrent.cells import CellState, RecurrentLayer, first_half, pack, unpack
from heedful.families.recurrent.products import PLAIN, LoopProducts, StepProducts
from heedful.families.recurrent.scores import RecurrentAttention
from heedful.families.recurrent.stack import RecurrentStack
from heedful.families.recurrent.wiring import RecurrentWiring
from heedful.families.row_state import RowState
from heedful.kernels.api import Dropout, Linear, linear
from heedful.model.flops import DecoderFlops, RowLengths
from heedful.model.halves import Memory, TargetDecoder, WeightLists
from heedful.model.parts import Parts


@dataclass(frozen=True)
class RecurrentState(RowState):
    """The state of a recurrent decoder between two steps: a `DecodingState`."""

    of_source: ClassVar[tuple[str, ...]] = ("keys", "values", "mask")

    layers: tuple[CellState, ...]
    """h of each layer, and c of each LSTM layer, each of shape (rows, width)."""
    fed: Tensor | None
    """Vector that the next step reads in addition to its embedding, shape (rows, width)."""
    keys: Tensor | None
    """Keys from `RecurrentAttention.project`, shape (sentences, source, key width)."""
    values: Tensor
    """States of the encoder, shape (sentences, source, memory width)."""
    mask: Tensor
    """True at real source tokens, shape (sentences, 1, source)."""
    length: int = 0
    """Number of target tokens read so far."""
    attention: Tensor | None = None
    """Attention weights of the last step, shape (rows, source)."""


class RecurrentDecoder(RecurrentStack, TargetDecoder):
    """A recurrent decoder with or without attention (`docs/explain/recurrent.md`)."""

    @checked
    def __init__(self, wiring: RecurrentWiring) -> None:
        super().__init__(wiring)
        self.width = wiring.readout_width
        self.attends = self.attends_once = wiring.score != "none"
        self.embedding_dropout = Dropout(wiring.embedding_dropout)
        self.readout_dropout = Dropout(wiring.readout_dropout)
        fed = {"none": 0, "context": wiring.memory_width, "readout": wiring.readout_width}
        self.fed_width = fed[wiring.feed]
        above = self.fed_width if wiring.feed_layers == "all" else 0
        inputs = [
            wiring.d_model + self.fed_width,
            *[wiring.inputs_above(wiring.state_width) + above] * (wiring.layers - 1),
        ]
        self.layers: Parts[RecurrentLayer] = Parts(
            RecurrentLayer(
                wiring.cell, width, wiring.hidden_size, projection=wiring.projection_size
            )
            for width in inputs
        )
        self.add_networks([wiring.state_width] * wiring.layers)
        self.attention = self.start_proj = self.readout = None
        if wiring.score != "none":
            self.attention = RecurrentAttention(
                wiring.score, wiring.state_width, wiring.memory_width, wiring.attention_size
            )
        if wiring.start in ("mean", "bridge", "backward"):
            self.start_proj = Linear(wiring.final_width, wiring.hidden_size)
        seen = wiring.state_width + (wiring.memory_width if wiring.score != "none" else 0)
        if wiring.readout == "attentional":
            self.readout = Linear(seen, wiring.readout_size)
        elif wiring.readout == "maxout":
            self.readout = Linear(seen + wiring.d_model, 2 * wiring.readout_size)

    def flops(self, target: RowLengths, memory: RowLengths) -> DecoderFlops:
        own, of_memory = self.flops_of_layers(self.layers, target), 0
        # results that no step needs are computed for all positions at once, in padded rows
        in_loop = not self._feeds_nothing_back
        if self.attention is not None:
            queries = target.computed(in_loop)
            own += self.attention.flops(queries, memory.places)
            of_memory = self.attention.flops_of_keys(memory.places)
        if self.start_proj is not None:
            of_memory += 2 * self.start_proj.weight.numel() * len(memory.tokens)
        if self.readout is not None:
            read = target.computed(self.wiring.feed == "readout")
            own += 2 * self.readout.weight.numel() * int(read.sum())
        return DecoderFlops(own, of_memory)

    # ------------------------------------------------------------ known targets

    def decode(
        self,
        x: Float[Tensor, "batch time d_model"],
        memory: Memory,
        weights: WeightLists = None,
        real: Bool[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch time width"]:
        x = self.embedding_dropout(x)
        state = self.start(memory)
        real = x.new_ones(x.shape[:2], dtype=torch.bool) if real is None else real
        if self._feeds_nothing_back:
            tops, contexts, recorded = self._run_at_once(x, state, real)
            out = self._read(tops, tops, contexts, x)
        else:
            out, recorded = self._run_step_by_step(x, state, real)
        if weights is not None and recorded is not None:
            weights[1].append(recorded.unsqueeze(1))  # (batch, 1, time, source)
        return out

    @property
    def _feeds_nothing_back(self) -> bool:
        """Whether each layer can run over all positions before attention is computed."""
        plain = self.wiring.feed == "none" and not self.wiring.fast_forward
        return plain and self.wiring.query == "current"

    @property
    def _bottom_attends_alone(self) -> bool:
        """Whether only the bottom layer gives the query and reads the context."""
        wiring = self.wiring
        alone = wiring.query == "previous" and wiring.feed_layers == "first"
        return alone and wiring.feed == "context" and not wiring.fast_forward

    def _run_at_once(
        self, x: Tensor, state: RecurrentState, real: Tensor
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Run each layer over all positions, then attend from all of them."""
        tops = unpack(self._run_over_time(pack(x, real), state.layers), x.size(1))
        # (batch, time, width)
        if self.attention is None or state.keys is None:
            return tops, None, None
        contexts, recorded = self.attention(tops, state.keys, state.values, state.mask)
        return tops, contexts, recorded

    def _run_over_time(
        self, packed: PackedSequence, states: Sequence[CellState], above: int = 0
    ) -> PackedSequence:
        """Run the layers above layer `above` over all positions, starting from `states`."""
        for number, layer in enumerate(self.layers, start=1):
            if number <= above:
                continue
            below = packed.data if number == 1 else self.layer_dropout(packed.data)
            out, _ = layer.run(packed._replace(data=below), states[number - 1])
            done = self.mix(number, self.add_residual(number, out.data, packed.data))
            packed = packed._replace(data=done)
        return packed

    def _run_step_by_step(
        self, x: Tensor, state: RecurrentState, real: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """
        Run layers position by position, then compute the results that are not fed back.

        Rows are sorted by length, so that rows whose target has ended leave the loop.
        """
        packed, first_states = pack(x, real), state.layers
        if packed.sorted_indices is not None:
            state = state.select(packed.sorted_indices, packed.sorted_indices)
        weight, fed_weight, bias = self.layers.first.input_parts(self.wiring.d_model)
        sizes = packed.batch_sizes.tolist()
        tokens = packed.data.split(sizes)  # each (rows, d_model)
        # a fast-forward layer adds the bias later, because it passes on the projection without the
        # bias
        now = None if self.wiring.fast_forward else bias
        gates = linear(packed.data, weight, now).split(sizes)  # each (rows, gates)
        products = LoopProducts() if torch.is_grad_enabled() else PLAIN
        steps, below = [], 1 if self._bottom_attends_alone else len(self.layers)
        for token, gate in zip(tokens, gates, strict=True):
            known = _KnownInput(gate, fed_weight, products)
            steps.append(self._advance(token, _first(state, len(token)), known, below))
            state = steps[-1].state

        def together(parts: Iterable[Tensor | None]) -> Tensor:
            """Join one tensor of each step into a tensor of shape (batch, time, width)."""
            joined = torch.cat([part for part in parts if part is not None])
            return unpack(packed._replace(data=joined), x.size(1))

        recorded = contexts = None
        if self.attention is not None:
            recorded = together(step.state.attention for step in steps)
        if steps[0].readout is not None:
            return together(step.readout for step in steps), recorded
        tops = together(step.top for step in steps)
        if self._bottom_attends_alone:
            bottom = torch.cat([step.top for step in steps])  # (tokens, width)
            above = packed._replace(data=self.mix(1, bottom))
            tops = unpack(self._run_over_time(above, first_states, above=1), x.size(1))
        queries = together(step.query for step in steps)
        if self.attention is not None:
            contexts = together(step.context for step in steps)
        return self._read(tops, queries, contexts, x), recorded

    # ------------------------------------------------------------ a search

    def start(self, memory: Memory) -> RecurrentState:
        rows, like = len(memory.states), memory.states
        fed = like.new_zeros(rows, self.fed_width) if self.fed_width else None
        keys = None if self.attention is None else self.attention.project(memory.states)
        layers = tuple(self._first_states(memory))
        return RecurrentState(layers, fed, keys, memory.states, memory.mask[:, 0])

    def _first_states(self, memory: Memory) -> list[CellState]:
        """
        Return the state of each layer before the first token.

        Sources: Bahdanau et al. 2015, section A.2.2 (backward); Sutskever et al. 2014 (final);
        Sennrich et al. 2017, Nematus (mean).
        """
        count, start = len(self.layers), self.wiring.start
        zero = self.layers.first.zero_state(len(memory.states), memory.states)
        if start == "zero":
            return [zero] * count
        if start == "final":
            return [self._require(final.backward or final.forward) for final in memory.final]
        if start == "last":
            first = self._summary(memory)[:, : self.wiring.state_width]  # forward comes first
        else:
            assert self.start_proj is not None
            first = torch.tanh(self.start_proj(self._summary(memory)))
        return [(first,) * len(zero)] * count

    @staticmethod
    def _require(state: CellState | None) -> CellState:
        """Return the state; the wiring guarantees that it is not None."""
        assert state is not None
        return state

    def _summary(self, memory: Memory) -> Tensor:
        """Return the vectors from which the first state is computed."""
        if self.wiring.start == "mean":
            real = memory.mask[:, 0, 0].unsqueeze(2)  # (batch, source, 1)
            return (memory.states * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
        final = memory.final[-1]
        if self.wiring.start == "backward":
            return self._require(final.backward)[0]
        both = [state[0] for state in (final.forward, final.backward) if state is not None]
        return torch.cat(both, dim=-1)

    def step(
        self, x: Float[Tensor, "sentences hypotheses d_model"], state: RecurrentState
    ) -> tuple[Float[Tensor, "sentences hypotheses width"], RecurrentState]:
        y = self.embedding_dropout(x.flatten(0, 1))  # (rows, d_model)
        step = self._advance(y, state)
        out = step.readout
        if out is None:
            out = self._read(step.top, step.query, step.context, y)
        return out.unflatten(0, x.shape[:2]), step.state

    # ------------------------------------------------------------ one step

    def _advance(
        self,
        y: Tensor,
        state: RecurrentState,
        known: "_KnownInput | None" = None,
        layers_below: int | None = None,
    ) -> "_Step":
        """Compute the next state of all layers, or of the lowest layers, from an embedding."""
        wiring = self.wiring
        products = PLAIN if known is None else known.products
        context = weights = readout = None
        fed, query = state.fed, state.layers[0][0]
        # 1. a previous query attends before the layers run
        if self.attention is not None and wiring.query == "previous":
            context, weights = self._attend(query, state, products)
            fed = context if wiring.feed == "context" else fed
        # 2. the layers
        layers = self._run_layers(y, fed, state.layers[:layers_below], known)
        top = layers.top
        # 3. a current query attends after the layers run
        if self.attention is not None and wiring.query == "current":
            query = top
            context, weights = self._attend(query, state, products)
        # 4. the input of the next step
        if wiring.feed == "readout":
            readout = self._read(top, query, context, y, products)
        fed = readout if wiring.feed == "readout" else context
        newer = RecurrentState(
            layers.states,
            fed if wiring.feed != "none" else None,
            state.keys,
            state.values,
            state.mask,
            state.length + 1,
            weights,
        )
        return _Step(newer, top, query, context, readout)

    def _run_layers(
        self,
        y: Tensor,
        fed: Tensor | None,
        states: Sequence[CellState],
        known: "_KnownInput | None",
    ) -> "_Layers":
        """Run all layers for one position."""
        wiring, newer = self.wiring, []
        products = PLAIN if known is None else known.products
        x, product = y, None  # output of the layer below, and its projected input
        for number, (layer, state) in enumerate(zip(self.layers, states, strict=False), start=1):
            if number == 1 and known is not None:
                gates = known.gates
                if fed is not None:
                    gates = gates + products.linear(fed, known.fed_weight)
            else:
                parts = [x if number == 1 else self.layer_dropout(x)]
                if product is not None:
                    parts.append(first_half(product))
                if fed is not None and (number == 1 or wiring.feed_layers == "all"):
                    parts.append(fed)
                read = torch.cat(parts, dim=-1) if len(parts) > 1 else parts[0]
                to_gates = layer.product if wiring.fast_forward else layer.project
                gates = to_gates(read, products)
            if wiring.fast_forward:
                product, gates = gates, layer.add_bias(gates)
            new = layer.step(gates, state, products)
            newer.append(new)
            x = self.add_residual(number, new[0], x)
            if known is None:  # with a known target, networks run over all positions at once
                x = self.mix(number, x)
        return _Layers(x, tuple(newer))

    def _attend(
        self, query: Tensor, state: RecurrentState, products: StepProducts
    ) -> tuple[Tensor, Tensor]:
        """Attend from each row to the memory of its sentence."""
        assert self.attention is not None and state.keys is not None
        queries = query.unflatten(0, (state.sentences, -1))  # (sentences, hypotheses, width)
        context, weights = self.attention(queries, state.keys, state.values, state.mask, products)
        return context.flatten(0, 1), weights.flatten(0, 1)  # (rows, memory width), (rows, source)

    def _read(
        self,
        top: Tensor,
        query: Tensor,
        context: Tensor | None,
        y: Tensor,
        products: StepProducts = PLAIN,
    ) -> Tensor:
        """Compute the input of the output matrix, for a step or for all positions."""
        wiring = self.wiring
        if wiring.readout == "maxout":
            seen = query if wiring.query == "previous" else top
            parts = [seen, y] if context is None else [seen, y, context]
            assert self.readout is not None
            pairs = products.linear(
                torch.cat(parts, dim=-1), self.readout.weight, self.readout.bias
            )
            both = pairs.unflatten(-1, (-1, 2))  # (.., readout size, 2)
            return self.readout_dropout(both.amax(dim=-1))  # (.., readout size)
        if wiring.readout == "state":
            return self.readout_dropout(top)
        both = top if context is None else torch.cat([top, context], dim=-1)
        both = self.readout_dropout(both)
        if self.readout is None:
            return both
        return torch.tanh(products.linear(both, self.readout.weight, self.readout.bias))


def _first(state: RecurrentState, rows: int) -> RecurrentState:
    """Cut the state to the first rows; keys and values stay whole, but later rows are not read."""
    if rows == len(state.mask):
        return state
    return replace(
        state,
        layers=tuple(tuple(part[:rows] for part in layer) for layer in state.layers),
        fed=None if state.fed is None else state.fed[:rows],
        mask=state.mask[:rows],
    )


class _KnownInput(NamedTuple):
    """Values computed for all positions of a known target at once."""

    gates: Tensor
    """The embedding's contribution to the first layer's gates, shape (rows, gates)."""
    fed_weight: Tensor
    """The first layer's weights for the fed input, shape (gates, fed)."""
    products: StepProducts
    """The matrix multiplications of the loop that reads the target."""


@dataclass(frozen=True)
class _Layers:
    """The states of all layers after a step."""

    top: Tensor
    """Output of the top layer, including its residual connection."""
    states: tuple[CellState, ...]


@dataclass(frozen=True)
class _Step:
    """The results of one step."""

    state: RecurrentState
    top: Tensor
    query: Tensor
    context: Tensor | None
    readout: Tensor | None
    """The readout; None unless it is fed back."""
