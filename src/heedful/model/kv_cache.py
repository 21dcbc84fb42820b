"""
The key/value cache of a search, whose keys and values are never reordered.

Each generated token has one slot for its keys and values until no open hypothesis contains it. A
table contains the slots that each hypothesis may attend to, and only this table is reordered when
the beam changes:

::

    slot            0      1      2      3      4 ...
    token         Ein   Zwei   Hund  Junge   Mann
    hypothesis 0    x             x                   Ein Hund
    hypothesis 1    x                    x            Ein Junge
    hypothesis 2           x                    x     Zwei Mann

All hypotheses of a sentence are batched as queries against one tensor of keys and values, in which
common prefixes are stored once. Slots are allocated in blocks, so that shapes seldom change;
allocating a block drops unused slots.
"""

from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.model.parts import KeyValue, TargetCache
from heedful.model.window import close_oldest

# A new block has room for _BLOCK_STEPS tokens of each hypothesis, or for a quarter of the slots in
# use if that is more. Smaller blocks need more copies: with 8 tokens a search of 64 sentences took
# 2% longer. Larger blocks need more computation on empty slots. For few sentences a copy costs
# more than empty slots, so all sentences together get at least _LEAST_SLOTS. The number of slots is
# a multiple of _MULTIPLE, which fills vector registers with bf16 or fp32 numbers.
_BLOCK_STEPS, _LEAST_SLOTS = 16, 64
_MULTIPLE = 16


def mask_to_bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert a boolean mask to a bias, which kernels add while they compute the scores."""
    bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return bias.masked_fill_(~mask, float("-inf"))


@cache
def own_slots(width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Build a bias that limits each hypothesis to its own newest token: zeros on the diagonal."""
    with torch.inference_mode(False):  # also cached for callers that compute gradients
        return mask_to_bias(torch.eye(width, dtype=torch.bool, device=device), dtype)


@dataclass(frozen=True)
class KVCache:
    """
    Keys and values of all tokens in open hypotheses.

    Tensors are written in place, so only the newest cache of a search may be used.
    """

    layers: tuple[KeyValue, ...]
    """Keys and values of each decoder layer, shape (sentences, heads, slots, d_k or d_v)."""
    mask_bias: Float[Tensor, "sentences width slots"]
    """Zero if a hypothesis contains the token in a slot, else minus infinity."""
    filled: int = 0
    """Number of slots in use."""
    window: int | None = None
    """Number of most recent tokens to which a hypothesis may attend; all tokens if None."""

    @classmethod
    def empty(cls, layers: int, memory: KeyValue, window: int | None = None) -> "KVCache":
        """Create a cache without tokens, with the sizes, device and type of `memory`."""
        nothing = KeyValue(memory.keys[:, :, :0], memory.values[:, :, :0])
        sentences = memory.keys.size(0)
        return cls((nothing,) * layers, memory.keys.new_zeros(sentences, 1, 0), 0, window)

    def select(
        self, rows: Int[Tensor, " rows"], sentences: Int[Tensor, " kept"] | None = None
    ) -> "KVCache":
        """Select hypotheses; keys and values are copied only when sentences are removed."""
        layers = self.layers
        if sentences is not None:
            layers = tuple(layer.select(sentences) for layer in layers)
        count = layers[0].keys.size(0)
        bias = self.mask_bias.flatten(0, 1).index_select(0, rows)  # (rows, slots)
        # (kept sentences, new width, slots)
        bias = bias.view(count, rows.size(0) // max(count, 1), self.mask_bias.size(2))
        return KVCache(layers, bias, self.filled, self.window)

    def advance(self, width: int) -> "KVCache":
        """Assign each hypothesis a slot for its next token; no other hypothesis attends to it."""
        # 1. make room for one more token of each hypothesis
        roomy = self if self.filled + width <= self.mask_bias.size(2) else self._with_room(width)
        # 2. add rows if the caller has several tokens of a sentence right after `start`; otherwise
        # `select` has added them
        bias = roomy.mask_bias
        if bias.size(1) != width:
            bias = bias.repeat(1, width // bias.size(1), 1)  # (sentences, width, slots)
        elif self.window is not None:
            bias = bias.clone()  # slots closed below may still be open in the previous cache
        # 3. hypothesis i gets the i-th new slot; the previous cache must not be used any more
        bias[:, :, roomy.filled : roomy.filled + width] = own_slots(width, bias.dtype, bias.device)
        if self.window is not None:
            close_oldest(bias, self.window)
        return KVCache(roomy.layers, bias, roomy.filled + width, self.window)

    def write(self, layer: int, newest: KeyValue) -> KeyValue:
        """Write the newest keys and values; unused slots contain zeros, so that no NaN spreads."""
        cached = self.layers[layer]
        first = self.filled - newest.keys.size(2)
        cached.keys[:, :, first : self.filled] = newest.keys
        cached.values[:, :, first : self.filled] = newest.values
        return cached

    def _with_room(self, width: int) -> "KVCache":
        """Copy the slots still in use to new tensors with one more block of slots."""
        sentences, heads = self.layers[0].keys.shape[:2]
        used = (self.mask_bias[:, :, : self.filled] == 0).any(dim=1)  # (sentences, slots)
        most = int(used.sum(dim=1).max()) if self.filled else 0
        # the slots in use come first, in their old order: (sentences, most)
        order = used.int().argsort(dim=1, descending=True, stable=True)[:, :most]
        slots = most + max(width * _BLOCK_STEPS, most // 4, _LEAST_SLOTS // max(sentences, 1))
        slots = -(-slots // _MULTIPLE) * _MULTIPLE
        first = torch.arange(sentences * heads, device=order.device).view(sentences, heads, 1)
        # row of each slot in (sentences * heads * slots, d_k): (sentences * heads * most)
        rows = (first * self.mask_bias.size(2) + order.unsqueeze(1)).flatten()

        def move(old: Tensor) -> Tensor:
            new = old.new_zeros(sentences, heads, slots, old.size(3))
            if most:
                moved = old.reshape(-1, old.size(3)).index_select(0, rows)
                new[:, :, :most] = moved.view(sentences, heads, most, -1)
            return new

        bias = self.mask_bias.new_full((sentences, self.mask_bias.size(1), slots), float("-inf"))
        chosen = order.unsqueeze(1).expand(-1, self.mask_bias.size(1), -1)  # (.., width, most)
        bias[:, :, :most] = self.mask_bias.gather(2, chosen)
        layers = tuple(KeyValue(move(layer.keys), move(layer.values)) for layer in self.layers)
        return KVCache(layers, bias, most, self.window)


@dataclass(frozen=True)
class DecoderState:
    """The state of a decoder between two steps: a `DecodingState` with a key/value cache."""

    cache: TargetCache
    """Keys and values of the target tokens so far, or the cache of another mixer."""
    memory: tuple[KeyValue, ...]
    """Keys and values of the source, one entry per layer, one row per sentence."""
    mask_bias: Tensor
    """Zero at real source tokens, minus infinity at padding, shape (sentences, 1, 1, source)."""
    length: int
    """Number of target tokens read so far."""

    @property
    def sentences(self) -> int:
        """Number of sentences in the batch."""
        return self.mask_bias.size(0)

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "DecoderState":
        """Select rows; keys and values are copied only when finished sentences are removed."""
        memory, mask_bias = self.memory, self.mask_bias
        if sentences is not None:
            memory = tuple(layer.select(sentences) for layer in memory)
            mask_bias = mask_bias.index_select(0, sentences)
        return DecoderState(self.cache.select(rows, sentences), memory, mask_bias, self.length)
