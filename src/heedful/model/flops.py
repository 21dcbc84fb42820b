"""
Row lengths of a batch, and the operations that a Transformer's layers need for the batch.

::

    x x x x x      tokens 5, places 5
    x x x . .      tokens 3, places 5
    x . . . .      tokens 1, places 5

A family counts all positions if it computes padding; otherwise it counts only tokens. If padding is
removed (`heedful.model.layout.unpad`), everything except attention is computed only for tokens.
Attention needs one row per sentence: its compiled kernel skips padding, and other kernels restore
padding.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from heedful.kernels.api import leaves_padding_out, native_products
from heedful.model.window import Window

PerRow = Int[np.ndarray, " rows"]


@dataclass(frozen=True)
class RowLengths:
    """The lengths of the rows on one side of a batch."""

    tokens: PerRow
    """Number of real tokens of each row."""
    places: PerRow
    """Number of positions of each row: tokens and padding."""
    by_steps: bool = False
    """Whether a search computes positions one by one, so no position reads a later position."""

    @classmethod
    def padded(cls, tokens: Sequence[int] | PerRow) -> "RowLengths":
        """Make lengths of rows that are padded to the longest row."""
        counted = np.asarray(tokens, dtype=np.int64)
        return cls(counted, np.full_like(counted, counted.max(initial=1)))

    @classmethod
    def unpadded(cls, tokens: Sequence[int] | PerRow, by_steps: bool = False) -> "RowLengths":
        """Make lengths of rows without padding."""
        counted = np.asarray(tokens, dtype=np.int64)
        return cls(counted, counted, by_steps)

    @property
    def longest(self) -> int:
        """The number of positions of the longest row."""
        return int(self.places.max(initial=0))

    def computed(self, leaves_out: bool) -> PerRow:
        """Return the number of computed positions of each row; exclude padding if `leaves_out`."""
        return self.tokens if leaves_out else self.places

    def change(self, length: Callable[[PerRow], PerRow]) -> "RowLengths":
        """Apply a function to the lengths of all rows."""
        return RowLengths(length(self.tokens), length(self.places), self.by_steps)


def pairs_of(positions: PerRow, by_steps: bool = False) -> int:
    """Count the pairs of positions in all rows; if `by_steps`, exclude pairs with later keys."""
    every = positions * (positions + 1) // 2 if by_steps else positions * positions
    return int(every.sum())


class DecoderFlops(NamedTuple):
    """Numbers of forward operations of a decoder; a multiply-add counts as two."""

    own: int
    """Operations for target positions, including attention to the memory."""
    memory: int = 0
    """Operations for the memory, once per sentence."""


def encoder_flops(encoder: Any, source: RowLengths) -> int:
    """Count the operations of a Transformer's encoder."""
    leaves_out = leaves_padding_out(encoder, source.longest)
    return _of_sequence(encoder, source, leaves_out)


def decoder_flops(decoder: Any, target: RowLengths, memory: RowLengths) -> DecoderFlops:
    """Count the operations of a Transformer's decoder, which projects the memory only once."""
    leaves_out = leaves_padding_out(decoder, max(target.longest, memory.longest))
    queries, keys = target.computed(leaves_out), memory.computed(leaves_out)
    own, of_memory = _of_sequence(decoder, target, leaves_out), 0
    for attention in (layer.cross_attention for layer in decoder.layers):
        rows = leaves_out and _leaves_out_pairs(attention)
        pairs = int((target.computed(rows) * memory.computed(rows)).sum())
        projected = attention.d_model * attention.widths[0] + attention.out_proj.weight.numel()
        own += 2 * projected * int(queries.sum()) + _pair(attention) * pairs
        of_memory += 2 * attention.d_model * sum(attention.widths[1:]) * int(keys.sum())
    return DecoderFlops(own, of_memory)


def _of_sequence(stack: Any, lengths: RowLengths, leaves_out: bool) -> int:
    """Count the operations of self-attention and feed-forward networks, or their replacements."""
    places, tokens = int(lengths.computed(leaves_out).sum()), int(lengths.tokens.sum())
    networks = (layer.feed_forward for layer in stack.layers)
    return sum(
        _mixing(layer.self_attention, lengths, leaves_out, stack.window) for layer in stack.layers
    ) + sum(network.flops(places if network.computes_padding else tokens) for network in networks)


def _mixing(mixer: Any, lengths: RowLengths, leaves_out: bool, window: Window | None) -> int:
    """Count the operations of one layer's mixer."""
    if hasattr(mixer, "flops"):  # a `Mixer` counts its own operations
        return mixer.flops(lengths, leaves_out)
    weights = mixer.qkv_proj.weight.numel() + mixer.out_proj.weight.numel()
    positions = lengths.computed(leaves_out and _leaves_out_pairs(mixer))
    by_steps = lengths.by_steps
    pairs = _pairs_in(window, positions, by_steps) if window else pairs_of(positions, by_steps)
    related = 0 if mixer.relation is None else mixer.relation.flops(mixer.heads)
    products = 2 * weights * int(lengths.computed(leaves_out).sum())
    return products + related * int(positions.sum()) + _pair(mixer) * pairs


def _leaves_out_pairs(attention: Any) -> bool:
    """Return whether the attention kernel also skips padding when all other modules do."""
    is_product = attention.compare is None and attention.relation is None
    return is_product and native_products() is not None


def _pair(attention: Any) -> int:
    """Count the operations of a query-key pair in all heads: the score and the weighted value."""
    return 2 * attention.heads * (attention.d_k + attention.d_v)


def _pairs_in(window: Window, positions: PerRow, by_steps: bool) -> int:
    """Count the computed pairs: all pairs, those within blocks, or a search's within the window."""
    if by_steps:  # the first positions see fewer keys than the window has
        first = np.minimum(positions, window.width)
        return pairs_of(first, by_steps) + window.width * int((positions - first).sum())
    in_blocks = -(-positions // window.block) * window.block * window.block_keys
    return int(np.where(window.is_cut(positions), in_blocks, positions * positions).sum())
