"""
Encoder and decoder layers and stacks: section 3.1 of the paper, figure 1 without its two ends.

Each layer is a few sub-layers, each wrapped in residual wiring (`heedful.model.residual`). The
stacks take vectors, not ids, and are usable alone.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.model.attention import causal_mask
from heedful.model.inputs import check_mask
from heedful.model.kv_cache import DecoderState, KVCache, mask_to_bias
from heedful.model.layer_config import LayerConfig
from heedful.model.layout import Layout, pad, unpad
from heedful.model.memory import Memory, SourceEncoder, TargetDecoder
from heedful.model.projections import KeyValue


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
        layout: Layout | Bool[Tensor, "_ _ _ _"] | None = None,
    ) -> Float[Tensor, "batch time d_model"]:
        """
        Apply self-attention, then the feed-forward network.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            States.
        layout : Layout or Tensor of bool, optional
            Which positions attend to which: a layout or a bare mask; everywhere if None.

        Returns
        -------
        Tensor of float, shape (batch, time, d_model)
            New states.

        Notes
        -----
        Section 3.1, encoder.
        """
        x = self.self_residual(x, lambda states: self.self_attention(states, states, layout)[0])
        out: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return out


class Encoder(nn.Module, SourceEncoder):
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
        mask: Bool[Tensor, "batch _ _ time"] | None = None,
        weights: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch time d_model"]:
        """
        Run all layers.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            Embedded tokens with their positions.
        mask : Tensor of bool, shape (batch, 1, 1, time), optional
            True at real tokens; with rows for heads or queries, true where they may attend.
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
        if mask is None:
            mask = x.new_ones(len(x), 1, 1, x.size(1), dtype=torch.bool)
        return self.encode(x, check_mask("Encoder", mask), weights).states

    def encode(
        self,
        x: Float[Tensor, "batch time d_model"],
        mask: Bool[Tensor, "batch _ _ time"],
        weights: list[Tensor] | None = None,
    ) -> Memory:
        # recorded weights have padded rows, so nothing is unpadded then
        real = None if weights is not None else _real_keys(mask)  # (batch, time)
        x, packing = unpad(x, real, keys=x.size(1))
        layout = Layout(mask, packing, packing, weights)
        for layer in self.layers:
            x = layer(x, layout)
        return Memory(pad(self.norm(x), packing), mask)


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
        layout: Layout | Bool[Tensor, "_ _ _ _"] | None,
        memory_layout: Layout | Bool[Tensor, "_ _ _ _"] | None,
    ) -> Float[Tensor, "batch time d_model"]:
        """
        Apply masked self-attention, cross-attention and the feed-forward network.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            States.
        memory : Tensor of float, shape (batch, source, d_model)
            Output of the encoder.
        layout : Layout, Tensor of bool or None
            Which positions of `x` attend to which: a layout or a bare mask; everywhere if None.
        memory_layout : Layout, Tensor of bool or None
            Which positions of `x` attend to which of the memory.

        Returns
        -------
        Tensor of float, shape (batch, time, d_model)
            New states.

        Notes
        -----
        Section 3.1, decoder.
        """
        x = self.self_residual(x, lambda states: self.self_attention(states, states, layout)[0])
        x = self.cross_residual(
            x, lambda states: self.cross_attention(states, memory, memory_layout)[0]
        )
        out: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return out

    def step(
        self,
        x: Float[Tensor, "sentences width d_model"],
        write: Callable[[KeyValue], KeyValue],
        mask_bias: Float[Tensor, "sentences heads width slots"],
        memory: KeyValue,
        memory_mask_bias: Float[Tensor, "sentences heads width source"],
    ) -> Float[Tensor, "sentences width d_model"]:
        """
        Process one more token of each hypothesis.

        Parameters
        ----------
        x : Tensor of float, shape (sentences, width, d_model)
            States of the newest tokens.
        write : callable
            Writes the keys and values of the newest tokens to the cache; returns those of all.
        mask_bias : Tensor of float, shape (sentences, heads, width, slots)
            Zero where a hypothesis contains the token in a slot, else minus infinity.
        memory : KeyValue
            Keys and values of the source.
        memory_mask_bias : Tensor of float, shape (sentences, heads, width, source)
            Zero at real source tokens, else minus infinity.

        Returns
        -------
        Tensor of float, shape (sentences, width, d_model)
            New states.

        Notes
        -----
        All hypotheses of a sentence are batched as queries against one copy of its keys and values.
        """
        own, cross = self.self_attention, self.cross_attention

        def self_attend(states: Tensor) -> Tensor:
            query, newest = own.project(states, states).split()  # (sentences, heads, width, d_k)
            return own.attend_cached(query, write(newest), mask_bias)

        def cross_attend(states: Tensor) -> Tensor:
            return cross.attend_cached(cross.project_query(states), memory, memory_mask_bias)

        x = self.self_residual(x, self_attend)
        x = self.cross_residual(x, cross_attend)
        out: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return out


class Decoder(nn.Module, TargetDecoder):
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
        memory_mask: Bool[Tensor, "batch _ _ source"] | None = None,
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
        memory_mask : Tensor of bool, shape (batch, 1, 1, source), optional
            True at real source tokens; everywhere if None. It may have rows for heads or queries.
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
        own_weights, cross_weights = (None, None) if weights is None else weights
        if memory_mask is not None:
            check_mask("Decoder", memory_mask)
        mask, most_keys = causal_mask(x.size(1), x.device), max(x.size(1), memory.size(1))
        packing = memory_packing = None
        real_memory = _real_keys(memory_mask)
        differs = memory_mask is not None and real_memory is None  # by query, which needs its row
        # recorded weights have padded rows, so nothing is unpadded then
        if weights is None and not differs:
            x, packing = unpad(x, real, most_keys)
            memory, memory_packing = unpad(memory, real_memory, most_keys)
        layout = Layout(mask, packing, packing, own_weights)
        memory_layout = Layout(memory_mask, packing, memory_packing, cross_weights)
        for layer in self.layers:
            x = layer(x, memory, layout, memory_layout)
        return pad(self.norm(x), packing)

    def _cache_dtype(self, sentences: int, dtype: torch.dtype) -> torch.dtype:
        """Choose the type of the keys and values that a search keeps; inference may shorten it."""
        return dtype

    def decode(
        self,
        x: Float[Tensor, "batch time d_model"],
        memory: Memory,
        weights: tuple[list[Tensor], list[Tensor]] | None = None,
        real: Bool[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch time d_model"]:
        out: Tensor = self(x, memory.states, memory.mask, weights, real)
        return out

    def start(self, memory: Memory) -> DecoderState:
        dtype = self._cache_dtype(len(memory.states), memory.states.dtype)
        kv = (layer.cross_attention.project_kv(memory.states) for layer in self.layers)  # type: ignore[operator,union-attr]
        # laid out head by head, as every step reads them
        projected = tuple(
            KeyValue(*(part.to(dtype, memory_format=torch.contiguous_format) for part in both))
            for both in kv
        )
        mask_bias = mask_to_bias(memory.mask, projected[0].keys.dtype)
        return DecoderState(KVCache.empty(len(projected), projected[0]), projected, mask_bias, 0)

    def step(
        self, x: Float[Tensor, "sentences width d_model"], state: DecoderState
    ) -> tuple[Float[Tensor, "sentences width d_model"], DecoderState]:
        cache = state.cache.advance(x.size(1))
        states = self._step_layers(x, cache, state.memory, state.mask_bias)
        return states, DecoderState(cache, state.memory, state.mask_bias, state.length + 1)

    def _step_layers(
        self,
        x: Float[Tensor, "sentences width d_model"],
        cache: KVCache,
        memory: Sequence[KeyValue],
        mask_bias: Float[Tensor, "sentences 1 1 source"],
    ) -> Float[Tensor, "sentences width d_model"]:
        """Run all layers on one more token of each hypothesis, whose slots in the cache are new."""
        width, heads = x.size(1), cache.layers[0].keys.size(1)
        # copied, not expanded: the products of a step start from dense biases
        own_bias = cache.mask_bias.unsqueeze(1).repeat(1, heads, 1, 1)  # (.., heads, width, slots)
        memory_bias = mask_bias.repeat(1, heads, width, 1)  # (sentences, heads, width, source)
        for index, layer in enumerate(self.layers):
            write = partial(cache.write, index)
            x = layer.step(x, write, own_bias, memory[index], memory_bias)  # type: ignore[operator]
        out: Tensor = self.norm(x)
        return out


def _real_keys(mask: Tensor | None) -> Tensor | None:
    """Return which keys are real (batch, keys); None if a mask differs by head or query."""
    if mask is None or mask.size(1) != 1 or mask.size(2) != 1:
        return None
    return mask[:, 0, 0]
