"""
Encoder and decoder layers and stacks: section 3.1 of the paper, figure 1 without its two ends.

Each layer is a few sub-layers, each wrapped in residual wiring (`heedful.model.residual`). The
stacks take vectors, not ids, and are usable alone.
"""

from collections.abc import Callable, Sequence

from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.model.attention import KeyValue, biased_attention, causal_mask
from heedful.model.cpu.attention import Packings, use_cpu_kernel
from heedful.model.cpu.unpadding import Packing
from heedful.model.kv_cache import KVCache
from heedful.model.layer_shape import LayerConfig

SelfAttend = Callable[[Tensor, KeyValue], Tensor]
"""From queries and the newest keys and values to the context of all tokens so far."""
CrossAttend = Callable[[Tensor], Tensor]
"""From queries to the context of the source."""


class EncoderLayer(nn.Module):
    """
    Self-attention, then a feed-forward network (figure 1, left).

    Parameters
    ----------
    config : LayerConfig
        Sizes, heads, dropout and norm.

    Notes
    -----
    Section 3.1.
    """

    def __init__(self, config: LayerConfig) -> None:
        super().__init__()
        self.self_attention = config.attention()
        self.self_residual = config.residual()
        self.feed_forward = config.feed_forward()
        self.feed_forward_residual = config.residual()

    def forward(
        self,
        x: Float[Tensor, "batch time d_model"],
        mask: Bool[Tensor, "_ 1 1 _"] | None = None,
        weights: list[Tensor] | None = None,
        packing: Packing | None = None,
    ) -> Float[Tensor, "batch time d_model"]:
        """
        Apply self-attention, then the feed-forward network.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            States.
        mask : Tensor of bool, shape (batch, 1, 1, time), optional
            True at real tokens.
        weights : list, optional
            A list to which the attention weights of this layer are appended.
        packing : Packing, optional
            Unpadding of `x`; None for padded rows.

        Returns
        -------
        Tensor of float, shape (batch, time, d_model)
            New states.

        Notes
        -----
        Section 3.1, encoder.
        """

        def self_attend(states: Tensor) -> Tensor:
            need = weights is not None
            found = self.self_attention(states, states, mask, need, (packing, packing))
            return _collect(found, weights)

        x = self.self_residual(x, self_attend)
        out: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return out


class Encoder(nn.Module):
    """
    A stack of encoder layers.

    Parameters
    ----------
    config : LayerConfig
        Sizes and choices of each layer.
    layers : int
        Number of layers.

    Notes
    -----
    Section 3.1: the paper stacks six. Input are vectors, not ids, so it serves any sequence.

    Examples
    --------
    Two words, “hello world”, through the encoder of the base model:

    >>> import torch
    >>> words = torch.randn(1, 2, 512)
    >>> encoder = Encoder(LayerConfig(d_model=512, d_ff=2048, heads=8), layers=6)
    >>> weights = []
    >>> encoder(words, weights=weights).shape
    torch.Size([1, 2, 512])
    >>> len(weights), weights[0].shape
    (6, torch.Size([1, 8, 2, 2]))
    """

    def __init__(self, config: LayerConfig, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(layers))
        self.norm = config.final_norm()

    def forward(
        self,
        x: Float[Tensor, "batch time d_model"],
        mask: Bool[Tensor, "batch 1 1 time"] | None = None,
        weights: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch time d_model"]:
        """
        Run all layers.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            Embedded tokens with their positions.
        mask : Tensor of bool, shape (batch, 1, 1, time), optional
            True at real tokens.
        weights : list, optional
            A list to which the attention weights (batch, heads, time, time) of each layer are
            appended.

        Returns
        -------
        Tensor of float, shape (batch, time, d_model)
            The memory.

        Notes
        -----
        Section 3.1.
        """
        packing = None
        if mask is not None and weights is None and use_cpu_kernel(x, x.size(1)):
            packing = Packing.of(mask[:, 0, 0])
        x = x if packing is None else packing.pack(x)
        for layer in self.layers:
            x = layer(x, mask, weights, packing)
        out: Tensor = self.norm(x)
        return out if packing is None else packing.unpack(out)


class DecoderLayer(nn.Module):
    """
    Masked self-attention, cross-attention, feed-forward network (figure 1, right).

    Parameters
    ----------
    config : LayerConfig
        Sizes, heads, dropout and norm.

    Notes
    -----
    Section 3.1.
    """

    def __init__(self, config: LayerConfig) -> None:
        super().__init__()
        self.self_attention = config.attention()
        self.self_residual = config.residual()
        self.cross_attention = config.attention()
        self.cross_residual = config.residual()
        self.feed_forward = config.feed_forward()
        self.feed_forward_residual = config.residual()

    def forward(
        self,
        x: Float[Tensor, "batch time d_model"],
        memory: Float[Tensor, "_ source d_model"],
        mask: Bool[Tensor, "1 1 _ _"],
        memory_mask: Bool[Tensor, "_ 1 1 _"],
        weights: tuple[list[Tensor], list[Tensor]] | None = None,
        packings: Packings = (None, None),
    ) -> Float[Tensor, "batch time d_model"]:
        """
        Apply masked self-attention, cross-attention and the feed-forward network.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            States.
        memory : Tensor of float, shape (batch, source, d_model)
            Output of the encoder.
        mask : Tensor of bool, shape (1, 1, time, time)
            True at and before each position.
        memory_mask : Tensor of bool, shape (batch, 1, 1, source)
            True at real source tokens.
        weights : pair of lists, optional
            Lists to which the weights of self-attention and cross-attention are appended.
        packings : pair of Packing or None, optional
            Unpadding of `x` and of `memory`; None for padded rows.

        Returns
        -------
        Tensor of float, shape (batch, time, d_model)
            New states.

        Notes
        -----
        Section 3.1, decoder.
        """
        need = weights is not None
        own, cross = weights if weights is not None else (None, None)
        here = (packings[0], packings[0])

        def self_attend(states: Tensor) -> Tensor:
            return _collect(self.self_attention(states, states, mask, need, here), own)

        def cross_attend(states: Tensor) -> Tensor:
            found = self.cross_attention(states, memory, memory_mask, need, packings)
            return _collect(found, cross)

        x = self.self_residual(x, self_attend)
        x = self.cross_residual(x, cross_attend)
        out: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return out

    def step(
        self,
        x: Float[Tensor, "sentences width d_model"],
        cache: SelfAttend,
        memory: CrossAttend,
    ) -> Float[Tensor, "sentences width d_model"]:
        """
        Process one more token of each hypothesis.

        Parameters
        ----------
        x : Tensor of float, shape (sentences, width, d_model)
            States of the newest tokens.
        cache : callable
            Maps (query, new keys/values) to the self-attention context over the cache.
        memory : callable
            Maps queries to the cross-attention context.

        Returns
        -------
        Tensor of float, shape (sentences, width, d_model)
            New states.

        Notes
        -----
        All hypotheses of a sentence are batched as queries against one copy of its keys and values.
        """

        def self_attend(states: Tensor) -> Tensor:
            return self.self_attention.merge_heads_and_project(
                cache(*self.self_attention.project_qkv(states))
            )

        def cross_attend(states: Tensor) -> Tensor:
            return self.cross_attention.merge_heads_and_project(
                memory(self.cross_attention.project_query(states))
            )

        x = self.self_residual(x, self_attend)
        x = self.cross_residual(x, cross_attend)
        out: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return out


class Decoder(nn.Module):
    """
    A stack of decoder layers.

    Parameters
    ----------
    config : LayerConfig
        Sizes and choices of each layer.
    layers : int
        Number of layers.

    Notes
    -----
    Section 3.1: the paper stacks six.
    """

    def __init__(self, config: LayerConfig, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(layers))
        self.norm = config.final_norm()

    def forward(
        self,
        x: Float[Tensor, "batch time d_model"],
        memory: Float[Tensor, "batch source d_model"],
        memory_mask: Bool[Tensor, "batch 1 1 source"],
        weights: tuple[list[Tensor], list[Tensor]] | None = None,
        real: Bool[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch time d_model"]:
        """
        Run all layers on a known target.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            Embedded target tokens with their positions, shifted right by one.
        memory : Tensor of float, shape (batch, source, d_model)
            Output of the encoder.
        memory_mask : Tensor of bool, shape (batch, 1, 1, source)
            True at real source tokens.
        weights : pair of lists, optional
            Lists to which the weights of self-attention and cross-attention are appended.
        real : Tensor of bool, shape (batch, time), optional
            True at real tokens, which come first in each row; everywhere if None. The states of
            padding may be zero.

        Returns
        -------
        Tensor of float, shape (batch, time, d_model)
            The state at position i predicts target token i.

        Notes
        -----
        Section 3.1; the mask is that of section 3.2.3.
        """
        mask = causal_mask(x.size(1), x.device)
        own = cross = None
        if weights is None and use_cpu_kernel(x, x.size(1)) and use_cpu_kernel(x, memory.size(1)):
            own = None if real is None else Packing.of(real)
            cross = Packing.of(memory_mask[:, 0, 0])
        x = x if own is None else own.pack(x)
        memory = memory if cross is None else cross.pack(memory)
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask, weights, (own, cross))
        out: Tensor = self.norm(x)
        return out if own is None else own.unpack(out)

    def step(
        self,
        x: Float[Tensor, "sentences width d_model"],
        cache: KVCache,
        memory: Sequence[KeyValue],
        mask_bias: Float[Tensor, "sentences 1 1 source"],
    ) -> Float[Tensor, "sentences width d_model"]:
        """
        Process one more token of each hypothesis through all layers.

        Parameters
        ----------
        x : Tensor of float, shape (sentences, width, d_model)
            The newest tokens, embedded, with their positions.
        cache : KVCache
            The cache with slots for these tokens, which are written.
        memory : sequence of KeyValue
            Keys and values of the source for each layer.
        mask_bias : Tensor of float, shape (sentences, 1, 1, source)
            Minus infinity at padding of the source, else zero.

        Returns
        -------
        Tensor of float, shape (sentences, width, d_model)
            States that predict the next token.

        Notes
        -----
        Equal to the last position of `forward` on the whole target; the tests hold them equal.
        """
        width, dtype = x.size(1), cache.bias.dtype
        heads = cache.layers[0].keys.size(1)
        own_bias = cache.bias.unsqueeze(1).repeat(1, heads, 1, 1)
        memory_bias = mask_bias.repeat(1, heads, width, 1)
        for index, layer in enumerate(self.layers):

            def self_attend(query: Tensor, newest: KeyValue, index: int = index) -> Tensor:
                kept = cache.write(index, newest)
                return biased_attention(query.to(dtype), *kept, own_bias).to(query.dtype)

            def cross_attend(query: Tensor, index: int = index) -> Tensor:
                found = biased_attention(query.to(dtype), *memory[index], memory_bias)
                return found.to(query.dtype)

            x = layer.step(x, self_attend, cross_attend)  # type: ignore[operator]
        out: Tensor = self.norm(x)
        return out


def _collect(found: tuple[Tensor, Tensor | None], weights: list[Tensor] | None) -> Tensor:
    """Append the weights to a list, if given, and return the context."""
    context, seen = found
    if weights is not None and seen is not None:
        weights.append(seen)
    return context
