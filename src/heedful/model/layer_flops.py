"""
What a Transformer's layers compute of a batch, with its padding or without.

Where padding is removed (`heedful.model.layout.unpad`), everything but attention is computed for
the tokens alone. Attention needs rows: the compiled function leaves padding out, other kernels put
it back.
"""

from collections.abc import Iterable

from heedful.kernels.api import native_products
from heedful.model.attention import MultiHeadAttention
from heedful.model.feed_forward import FeedForward
from heedful.model.lengths import RowLengths, pairs_of
from heedful.model.memory import DecoderFlops
from heedful.model.mixer import Mixer
from heedful.model.network import Network
from heedful.model.window import Window


def mixing_flops(
    mixers: Iterable[MultiHeadAttention | Mixer],
    lengths: RowLengths,
    leaves_out: bool,
    window: Window | None,
) -> int:
    """Count the operations of what mixes the positions of a sequence, in all layers."""
    return sum(_mixing(mixer, lengths, leaves_out, window) for mixer in mixers)


def network_flops(
    networks: Iterable[FeedForward | Network], lengths: RowLengths, leaves_out: bool
) -> int:
    """Count the operations of feed-forward networks, and of others, which compute no padding."""
    places, tokens = int(lengths.computed(leaves_out).sum()), int(lengths.tokens.sum())
    return sum(
        network.flops(tokens) if isinstance(network, Network) else network.flops() * places
        for network in networks
    )


def cross_flops(
    attentions: Iterable[MultiHeadAttention],
    target: RowLengths,
    source: RowLengths,
    leaves_out: bool,
) -> DecoderFlops:
    """Count the operations of attention to a memory, whose keys and values are projected once."""
    queries, keys = target.computed(leaves_out), source.computed(leaves_out)
    own = memory = 0
    for attention in attentions:
        rows = leaves_out and _leaves_out_pairs(attention)
        pairs = int((target.computed(rows) * source.computed(rows)).sum())
        projected = attention.d_model * attention.widths[0] + attention.out_proj.weight.numel()
        own += 2 * projected * int(queries.sum()) + _pair(attention) * pairs
        memory += 2 * attention.d_model * sum(attention.widths[1:]) * int(keys.sum())
    return DecoderFlops(own, memory)


def _mixing(
    mixer: MultiHeadAttention | Mixer, lengths: RowLengths, leaves_out: bool, window: Window | None
) -> int:
    """Count the operations of one layer's mixer."""
    if isinstance(mixer, Mixer):
        return mixer.flops(lengths, leaves_out)
    weights = mixer.qkv_proj.weight.numel() + mixer.out_proj.weight.numel()
    positions = lengths.computed(leaves_out and _leaves_out_pairs(mixer))
    by_steps = lengths.by_steps
    pairs = window.pairs(positions, by_steps) if window else pairs_of(positions, by_steps)
    return 2 * weights * int(lengths.computed(leaves_out).sum()) + _pair(mixer) * pairs


def _leaves_out_pairs(attention: MultiHeadAttention) -> bool:
    """Whether the kernel of attention itself leaves padding out, where all else does."""
    return attention.energy is None and native_products() is not None


def _pair(attention: MultiHeadAttention) -> int:
    """Count the operations of a query and a key in all heads: a score, a share of the context."""
    return 2 * attention.heads * (attention.d_k + attention.d_v)
