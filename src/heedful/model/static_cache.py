"""
Buffers with fixed addresses for the recorded graphs of a search.

A search takes a lane: buffers with room for a few more sentences, slots and source positions than
needed. They contain everything that a step depends on, including numbers such as the first free
slot. As in `heedful.model.kv_cache`, keys and values stay in their slots. Only the table that shows
which hypothesis may attend to which slot is reordered. A larger lane replaces a full lane, and a
smaller lane replaces a lane when the remaining sentences fit into it; the contents are copied.
After a search, its lane is free for the next search.

B sentences of the lane, K hypotheses of each, L slots, S source positions, H heads, D width.
"""

import threading
import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.kernels.api import Graph, fuse_kernels
from heedful.model.parts import KeyValue

# The numbers of slots and source positions are powers of two, at least _LEAST_SLOTS and
# _LEAST_SOURCE, so that few graphs serve all batches. Above _HALVES_FROM, the number of sentences
# may also be 3/4 of a power of two, because empty rows then cost more than kernel launches.
_LEAST_SLOTS, _LEAST_SOURCE, _HALVES_FROM = 64, 16, 16
# A full lane gets room for this many more tokens of each hypothesis.
ROOM_STEPS = 16
# Maximum number and bytes of free lanes; the least recently used lane is dropped first.
_MOST_LANES, _MOST_BYTES = 64, 8 << 30
# Only one thread at a time may record graphs.
_RECORDING = threading.Lock()

Prepare = Callable[["Lane"], object]
"""Records the graphs that a search needs in its lane, before the lane contains data."""


class Sizes(NamedTuple):
    """The sizes of the buffers of a lane."""

    sentences: int
    slots: int
    source: int


def power_of_two(count: int, least: int = 1) -> int:
    """Round up to a power of two."""
    return max(least, 1 << max(count - 1, 0).bit_length())


def sentence_bucket(count: int) -> int:
    """Round a number of sentences up to the next size that a lane may have."""
    power = power_of_two(count)
    half_step = power * 3 // 4
    return half_step if power > _HALVES_FROM and count <= half_step else power


@dataclass
class StepBuffers:
    """Inputs and outputs of the steps of a lane with K hypotheses of each sentence."""

    tokens: Int[Tensor, "sentences width"]
    """The newest token of each hypothesis."""
    table: Float[Tensor, "sentences width slots"]
    """Zero where a hypothesis contains the token in a slot, else minus infinity."""
    states: Tensor | None = None
    """The input of the output layer, (B * K, D), which the graph overwrites."""
    scores: Tensor | None = None
    """Log-probabilities of the next token, (B * K, vocabulary), which the graph overwrites."""


@dataclass
class Lane:
    """Buffers for one search at a time, with the graphs that use them."""

    sizes: Sizes
    own: tuple[KeyValue, ...]
    """Keys and values of the tokens so far, by layer: (B, H, L, d_k or d_v)."""
    memory: tuple[KeyValue, ...]
    """Keys and values of the source, by layer: (B, H, S, d_k or d_v)."""
    memory_bias: Float[Tensor, "sentences 1 1 source"]
    """Zero at real source tokens and in unused rows, minus infinity at padding."""
    slot: Int[Tensor, " 1"]
    """The first slot of the newest tokens."""
    position: Float[Tensor, "1 d_model"]
    """The encoding of the newest tokens' position."""
    steps: dict[int, StepBuffers] = field(default_factory=dict)
    """Buffers of a step, by the number of hypotheses of each sentence."""
    graphs: dict[Hashable, Graph] = field(default_factory=dict)
    """Recorded graphs by name."""
    choices: dict[Hashable, Any] = field(default_factory=dict)
    """Buffers of searches that choose tokens on the device, by search settings."""

    @classmethod
    def empty(cls, sizes: Sizes, layers: int, like: KeyValue, width: int) -> "Lane":
        """Allocate buffers; `like`: keys and values of a source with the same heads and type."""
        # buffers must be writable both in inference mode and outside it
        with torch.inference_mode(False):
            both = (
                (like.keys.size(1), like.keys.size(3)),
                (like.values.size(1), like.values.size(3)),
            )

            def zeros(length: int) -> tuple[KeyValue, ...]:
                shapes = [(sizes.sentences, heads, length, depth) for heads, depth in both]
                return tuple(KeyValue(*map(like.keys.new_zeros, shapes)) for _ in range(layers))

            return cls(
                sizes,
                zeros(sizes.slots),
                zeros(sizes.source),
                like.keys.new_zeros(sizes.sentences, 1, 1, sizes.source),
                torch.zeros(1, dtype=torch.long, device=like.keys.device),
                like.keys.new_zeros(1, width),
            )

    def clear(self) -> None:
        """Zero the buffers, because a non-finite old value times a weight of zero is NaN."""
        for part in (*self.own, *self.memory):
            part.keys.zero_()
            part.values.zero_()
        self.memory_bias.zero_()

    def of_width(self, width: int) -> StepBuffers:
        """Return the buffers of steps with `width` hypotheses of each sentence."""
        if width not in self.steps:
            keys, sizes = self.own[0].keys, self.sizes
            with torch.inference_mode(False):
                tokens = torch.zeros(sizes.sentences, width, dtype=torch.long, device=keys.device)
                table = keys.new_full((sizes.sentences, width, sizes.slots), float("-inf"))
            self.steps[width] = StepBuffers(tokens, table)
        return self.steps[width]

    def write(self, layer: int, places: Tensor, newest: KeyValue) -> KeyValue:
        """Write a layer's newest keys and values; return the keys and values of all tokens."""
        own = self.own[layer]
        own.keys.index_copy_(2, places, newest.keys)
        own.values.index_copy_(2, places, newest.values)
        return own

    def record(self, name: Hashable, work: Callable[[], object]) -> Graph:
        """Return the graph `name`; the first call runs `work` several times to record the graph."""
        if name not in self.graphs:
            with _RECORDING, fuse_kernels():
                self.graphs[name] = Graph(work, self.slot.device)
        return self.graphs[name]

    def bytes(self) -> int:
        """Estimate the memory of the lane, including the largest tensors of its graphs."""
        tensors = [self.memory_bias, *(part for pair in (*self.own, *self.memory) for part in pair)]
        for step in self.steps.values():
            tensors += [part for part in (step.table, step.states, step.scores) if part is not None]
        return sum(part.numel() * part.element_size() for part in tensors)


class Lanes:
    """The lanes of a model; simultaneous searches in several threads take different lanes."""

    def __init__(self) -> None:
        # The lock is reentrant, because garbage collection of a search may return its lane at any
        # time.
        self._lock = threading.RLock()
        self._free: list[tuple[Lane, int]] = []  # lanes with their bytes, least recently used first
        self.newest = threading.local()
        """For each thread, the newest step, whose states `log_probabilities` projects."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "Lanes":
        return Lanes()

    def __reduce__(self) -> tuple[Callable[[], "Lanes"], tuple[()]]:
        return Lanes, ()

    def __len__(self) -> int:
        return len(self._free)

    def take(
        self, sizes: Sizes, layers: int, like: KeyValue, width: int, prepare: Prepare | None
    ) -> "Lease":
        """Take a free lane with these sizes, or create a lane."""
        keys = like.keys
        with self._lock:
            for place in reversed(range(len(self._free))):
                lane = self._free[place][0]
                own = lane.own[0].keys
                if (lane.sizes, own.dtype, own.device) == (sizes, keys.dtype, keys.device):
                    del self._free[place]
                    break
            else:
                lane = Lane.empty(sizes, layers, like, width)
        if prepare is not None:
            prepare(lane)
        lane.clear()
        return Lease(self, lane, prepare)

    def give_back(self, lane: Lane) -> None:
        """Keep a lane for the next search; drop old lanes if their number or size is too large."""
        with self._lock:
            self._free.append((lane, lane.bytes()))
            while len(self._free) > _MOST_LANES or sum(b for _, b in self._free) > _MOST_BYTES:
                # this frees the memory at once, although graphs and their functions refer to each
                # other
                self._free.pop(0)[0].graphs.clear()


class Lease:
    """A search's claim on a lane; it ends when the last state of the search is deleted."""

    def __init__(self, lanes: Lanes, lane: Lane, prepare: Prepare | None) -> None:
        self.lanes, self.lane, self.prepare = lanes, lane, prepare
        weakref.finalize(self, lanes.give_back, lane).atexit = False

    def next_lane(self, sizes: Sizes) -> "Lease":
        """Take a lane of other sizes; return this claim if the sizes are the same."""
        if sizes == self.lane.sizes:
            return self
        lane, width = self.lane, self.lane.position.size(1)
        return self.lanes.take(sizes, len(lane.own), lane.memory[0], width, self.prepare)


@dataclass(frozen=True)
class StaticState:
    """
    The state of a search in its lane between two steps: a `DecodingState`.

    The lane is written in place, so only the newest state of a search may be used.
    """

    lease: Lease
    table: Float[Tensor, "sentences width slots"]
    """Zero where a hypothesis contains the token in a slot, else minus infinity."""
    filled: int
    """Number of slots in use."""
    length: int
    """Number of target tokens read so far."""

    @property
    def sentences(self) -> int:
        """Number of sentences in the batch."""
        return self.table.size(0)

    @classmethod
    def begin(
        cls,
        lanes: Lanes,
        memory: list[KeyValue],
        bias: Tensor,
        width: int,
        beam: int = 1,
        prepare: Prepare | None = None,
    ) -> "StaticState":
        """Take a lane for encoded sentences. `bias`: minus infinity at padding, else zero."""
        sentences, source = bias.size(0), bias.size(3)
        sizes = Sizes(
            sentence_bucket(sentences),
            power_of_two(beam * ROOM_STEPS, _LEAST_SLOTS),
            power_of_two(source, _LEAST_SOURCE),
        )
        lease = lanes.take(sizes, len(memory), memory[0], width, prepare)
        lane = lease.lane
        for static, projected in zip(lane.memory, memory, strict=True):
            static.keys[:sentences, :, :source].copy_(projected.keys)
            static.values[:sentences, :, :source].copy_(projected.values)
        lane.memory_bias[:sentences].fill_(float("-inf"))
        lane.memory_bias[:sentences, :, :, :source].copy_(bias)
        table = bias.new_full((sentences, 1, sizes.slots), float("-inf"))
        return cls(lease, table, 0, 0)

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "StaticState":
        """Select rows; keys and values are copied only when finished sentences are removed."""
        lease, count = self.lease, self.sentences
        if sentences is not None:
            count = len(sentences)
            lease = self._with_sentences(sentences)
        table = self.table.flatten(0, 1).index_select(0, rows)  # (rows, L)
        table = table.view(count, len(rows) // max(count, 1), table.size(1))
        return StaticState(lease, table, self.filled, self.length)

    def advance(self, width: int) -> tuple[StepBuffers, "StaticState"]:
        """Assign each hypothesis a slot for its newest token; the caller writes the tokens."""
        roomy = self
        if self.filled + width > self.table.size(2):
            roomy = self.with_room(width)
        table, lane = roomy.table, roomy.lease.lane
        if table.size(1) != width:  # a sentence may have several tokens right after the start
            table = table.repeat(1, width // table.size(1), 1)
        step = lane.of_width(width)
        static = step.table[: len(table)]
        static.copy_(table)
        lane.slot.fill_(roomy.filled)
        return step, StaticState(roomy.lease, static, roomy.filled + width, self.length + 1)

    def _with_sentences(self, chosen: Tensor) -> Lease:
        """Copy the chosen sentences to the first rows of this lane or of a smaller lane."""
        old, count = self.lease.lane, len(chosen)
        lease = self.lease.next_lane(old.sizes._replace(sentences=sentence_bucket(count)))
        new = lease.lane
        pairs = [(old.memory_bias, new.memory_bias)]
        for before, after in zip(old.memory, new.memory, strict=True):
            pairs += zip(before, after, strict=True)
        for before, after in zip(old.own, new.own, strict=True):
            # the other slots are empty
            pairs += [
                (source_part[:, :, : self.filled], target_part[:, :, : self.filled])
                for source_part, target_part in zip(before, after, strict=True)
            ]
        for source_part, target_part in pairs:
            target_part[:count].copy_(source_part.index_select(0, chosen))
        return lease

    def with_room(self, width: int) -> "StaticState":
        """Copy the slots still in use to the first slots of this lane, or of a larger lane."""
        sentences, rows, _ = self.table.shape
        used = (self.table[:, :, : self.filled] == 0).any(dim=1)  # (sentences, filled)
        most = int(used.sum(dim=1).max())
        # the slots in use come first, in their old order: (sentences, most)
        order = used.int().argsort(dim=1, descending=True, stable=True)[:, :most]
        old = self.lease.lane
        slots = max(old.sizes.slots, power_of_two(most + width * ROOM_STEPS))
        lease = self.lease.next_lane(old.sizes._replace(slots=slots))
        for before, after in zip(old.own, lease.lane.own, strict=True):
            for source_part, target_part in zip(before, after, strict=True):
                index = order[:, None, :, None].expand(
                    -1, source_part.size(1), -1, source_part.size(3)
                )
                target_part[:sentences, :, :most].copy_(source_part[:sentences].gather(2, index))
        if lease is not self.lease:
            for before, after in zip(old.memory, lease.lane.memory, strict=True):
                after.keys.copy_(before.keys)
                after.values.copy_(before.values)
            lease.lane.memory_bias.copy_(old.memory_bias)
        table = self.table.new_full((sentences, rows, slots), float("-inf"))
        table[:, :, :most] = self.table.gather(2, order.unsqueeze(1).expand(-1, rows, -1))
        return StaticState(lease, table, most, self.length)
