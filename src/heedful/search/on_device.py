"""
Searches that run almost entirely on a GPU: one graph computes layers, scores and choices of a step.

The host starts a few steps at once, then reads which sentences are finished. Finished sentences are
removed when the other sentences fit into a smaller lane (`heedful.model.static_cache`). The choices
of a sentence are copied to the host once, when it is removed. `heedful.search.choices` decides
which searches can run this way.
"""

from collections.abc import Sequence
from functools import partial

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.kernels.api import Graph
from heedful.model.contracts import Seq2Seq
from heedful.model.graphed import GraphedModel
from heedful.model.halves import Memory
from heedful.model.static_cache import Lane, StaticState, power_of_two, sentence_bucket
from heedful.search.choices import BeamChoices, ChoicePlan, Choices, GreedyChoices
from heedful.search.hypothesis import Hypothesis
from heedful.search.rules import DecodingRule
from heedful.search.settings import SearchOptions

# Number of steps between two reads of `done`. With a larger number, more steps are wasted at the
# end. With a smaller number, the device waits for the host.
_STEPS_AT_ONCE = 4
# The number of steps in a history is a power of two, at least _LEAST_STEPS. A history has at most
# _MOST_CANDIDATES candidates.
_LEAST_STEPS, _MOST_CANDIDATES = 64, 1 << 23


@torch.inference_mode()
def search_on_device(
    model: Seq2Seq,
    source: Int[Tensor, "sentences source"],
    limits: Sequence[int],
    settings: SearchOptions,
    rules: Sequence[DecodingRule] = (),
    *,
    greedy: bool = False,
) -> list[list[Hypothesis]] | None:
    """
    Search like `beam_search` or `greedy_search`; return None if the device cannot do the search.

    The model must be a `GraphedModel`, and `ChoicePlan` must support the settings.
    """
    if not isinstance(model, GraphedModel) or not limits:
        return None
    steps = power_of_two(max(limits) + 1 + _STEPS_AT_ONCE, _LEAST_STEPS)
    if 2 * settings.width * steps * sentence_bucket(len(limits)) > _MOST_CANDIDATES:
        return None
    vocabulary = model.output.weight.size(0)
    plan = ChoicePlan.of(settings, rules, model.end_token, vocabulary, steps, greedy)
    if plan is None or not model.can_begin(*source.shape):
        return None
    search = DeviceSearch(model, plan, rules)
    return search.run(model.encode(source), limits, settings.n_best)


class DeviceSearch:
    """A search on the device with a model, a plan and rules."""

    def __init__(
        self, model: GraphedModel, plan: ChoicePlan, rules: Sequence[DecodingRule]
    ) -> None:
        self.model, self.plan, self.rules = model, plan, rules
        self.width = max(1, plan.beam)

    def run(self, memory: Memory, limits: Sequence[int], n_best: int) -> list[list[Hypothesis]]:
        """Search until all sentences are finished."""
        width = self.width
        results: list[list[Hypothesis]] = [[] for _ in limits]
        rows = list(range(len(limits)))  # the sentence of each row that is still in the lane
        state = self._begin(memory, limits)
        while True:
            # 1. run steps, in a larger lane if this one has too few slots
            if state.filled + _STEPS_AT_ONCE * width > state.table.size(2):
                state = self._enter(state.with_room(width), state, None)
            lane = state.lease.lane
            graph = self._record(lane, width)
            for _ in range(_STEPS_AT_ONCE):
                graph.replay()
            state = self._state(state, _STEPS_AT_ONCE, len(rows))
            # 2. read which sentences are finished
            choices = self._choices(lane)
            over = choices.done[: len(rows)].tolist()
            going = [row for row, is_over in enumerate(over) if not is_over]
            if going and sentence_bucket(len(going)) == lane.sizes.sentences:
                continue
            # 3. copy the results of finished sentences, and move the other sentences to a smaller
            # lane
            leaving = [row for row, is_over in enumerate(over) if is_over]
            bounds = [limits[rows[row]] for row in leaving]
            finished = choices.results(leaving, bounds, state.length, n_best)
            for row, hypotheses in zip(leaving, finished, strict=True):
                results[rows[row]] = hypotheses
            if not going:
                return results
            rows = [rows[row] for row in going]
            going_rows = torch.tensor(going, device=lane.slot.device)
            beams = going_rows.unsqueeze(1) * width + torch.arange(width, device=going_rows.device)
            state = self._enter(state.select(beams.flatten(), going_rows), state, going_rows)

    def _begin(self, memory: Memory, limits: Sequence[int]) -> StaticState:
        """Take a lane and do the first step, which starts from one hypothesis for each sentence."""
        state = self.model.begin(memory, self.width, partial(self._record, width=self.width))
        lane = state.lease.lane
        graph, first = self._record(lane, 1), lane.of_width(1)
        # recording ran the step, so its results are reset
        self._choices(lane).reset(limits)
        lane.slot.zero_()
        first.table.fill_(float("-inf"))
        first.tokens.fill_(self.model.start_token)
        graph.replay()
        return self._state(StaticState(state.lease, first.table, 0, 0), 1, len(limits), 1)

    def _state(
        self, state: StaticState, steps: int, count: int, width: int | None = None
    ) -> StaticState:
        """Return the state after some steps with `width` hypotheses of each sentence."""
        table = state.lease.lane.of_width(self.width).table[:count]
        filled = state.filled + steps * (width or self.width)
        return StaticState(state.lease, table, filled, state.length + steps)

    def _enter(self, new: StaticState, old: StaticState, remaining: Tensor | None) -> StaticState:
        """Move the remaining sentences to another lane, or to other rows and slots of this lane."""
        before, after = old.lease.lane, new.lease.lane
        step = after.of_width(self.width)
        step.table[: new.sentences].copy_(new.table)
        after.slot.fill_(new.filled)
        if remaining is None:
            remaining = torch.arange(new.sentences, device=after.slot.device)
        tokens = before.of_width(self.width).tokens.index_select(0, remaining)
        step.tokens[: new.sentences].copy_(tokens)
        self._choices(after).move(self._choices(before), remaining)
        return new

    def _choices(self, lane: Lane) -> Choices:
        """Return the buffers of choices in a lane."""
        return lane.choices[self.plan]

    def _record(self, lane: Lane, width: int) -> Graph:
        """Return the graph of a step; record it if needed, before the search writes to the lane."""
        if self.plan not in lane.choices:
            kind = BeamChoices if self.plan.beam else GreedyChoices
            vocabulary = self.model.output.weight.size(0)
            with torch.inference_mode(False), torch.no_grad():
                choices = kind(self.plan, lane, self.rules, vocabulary)
                if self.model.target_positions is not None:
                    choices.positions = self.model.target_positions(0, self.plan.steps)
            lane.choices[self.plan] = choices
        name = ("search", self.plan, width)
        if name not in lane.graphs:
            lane.slot.zero_()
            self._choices(lane).length.zero_()
        return lane.record(name, partial(self._step, lane, self._choices(lane), width))

    def _step(self, lane: Lane, choices: Choices, width: int) -> None:
        """Compute a step, and write the inputs of the next step."""
        step = lane.of_width(width)
        if choices.positions is not None:
            lane.position.copy_(choices.positions.index_select(0, choices.length))
        self.model.decode_step(lane, step)
        self.model.project_step(step)
        choices.choose(lane, step)
