"""
Encoder and decoder layers and stacks: section 3.1, and figure 1 without embeddings and output.

The stacks take vectors, not ids, and can be used alone.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.arguments import checked
from heedful.errors import SettingError
from heedful.model.feed_forward import apply_network
from heedful.model.flops import DecoderFlops, RowLengths, decoder_flops, encoder_flops
from heedful.model.halves import (
    Memory,
    SourceEncoder,
    SourceMask,
    States,
    TargetDecoder,
    WeightLists,
)
from heedful.model.kv_cache import DecoderState, mask_to_bias
from heedful.model.layer_config import LayerConfig
from heedful.model.layout import Layout, causal_mask, check_mask, pad, real_positions, unpad
from heedful.model.parts import KeyValue, Mixer, Parts, TargetCache, TargetMixer, mixed_states
from heedful.model.residual import normalize
from heedful.model.score_bias import ScoreBias, bias_of_pairs, bias_of_slots
from heedful.model.window import Window, restrict

StepStates = Float[Tensor, "sentences width d_model"]
AnyLayout = Layout | Bool[Tensor, "_ _ _ _"] | None

Layer = TypeVar("Layer", bound=nn.Module)


class EncoderLayer(nn.Module):
    """An encoder layer: self-attention, then a feed-forward network (figure 1, left)."""

    @checked
    def __init__(self, config: LayerConfig) -> None:
        super().__init__()
        self.self_attention = _mixer(self, config, is_causal=False)
        self.self_residual = config.residual()
        self.feed_forward = config.feed_forward()
        self.feed_forward_residual = config.residual()

    def forward(self, x: States, layout: AnyLayout = None) -> States:
        """Compute new states; the layout determines to which positions each position attends."""
        real = Layout.of(layout).real
        x = self.self_residual(
            x, lambda states: mixed_states(self.self_attention, states, layout), real
        )
        return self.feed_forward_residual(
            x, lambda states: apply_network(self.feed_forward, states, real), real
        )


class Encoder(nn.Module, SourceEncoder):
    """
    A stack of encoder layers; the paper has six.

    Parameters
    ----------
    config : LayerConfig
        Sizes and settings of each layer.
    layers : int
        Number of layers.
    sharing : sequence of int, optional
        For each layer the index of its weights, from 1; layers with the same index share their
        weights.

    Notes
    -----
    The encoder takes vectors, not ids, so it can encode any sequence.

    Examples
    --------
    Encode two words, “hello world”, with the encoder of the base model:

    >>> import torch
    >>> words = torch.randn(1, 2, 512)
    >>> encoder = Encoder(LayerConfig(d_model=512, d_ff=2048, heads=8), layers=6)
    >>> weights = []
    >>> encoder(words, weights=weights).shape
    torch.Size([1, 2, 512])
    >>> len(weights), weights[0].shape
    (6, torch.Size([1, 8, 2, 2]))
    """

    @checked
    def __init__(
        self, config: LayerConfig, layers: int, sharing: Sequence[int] | None = None
    ) -> None:
        super().__init__()
        self.width, self.window = config.d_model, _window(config, Window.around)
        self.layers: Parts[EncoderLayer] = _layers(EncoderLayer, config, layers, sharing)
        self.norm = config.final_norm()
        self.score_bias = _score_bias(config)

    def forward(
        self,
        x: States,
        mask: Bool[Tensor, "_ _ _ time"] | None = None,
        weights: list[Tensor] | None = None,
    ) -> States:
        """
        Run all layers.

        Parameters
        ----------
        x : Tensor
            Embedded tokens with their positions.
        mask : Tensor, optional
            True at real tokens; with an axis of heads or queries, true where a head or query may
            attend to a token.
        weights : list, optional
            A list to which the attention weights (batch, heads, time, time) of each layer are
            appended.

        Returns
        -------
        Tensor
            The memory.
        """
        if mask is None:
            mask = x.new_ones(len(x), 1, 1, x.size(1), dtype=torch.bool)
        return self.encode(x, check_mask("Encoder", mask, x.size(0)), weights).states

    def encode(self, x: States, mask: SourceMask, weights: list[Tensor] | None = None) -> Memory:
        real = _real_keys(mask)  # (batch, time)
        bias = bias_of_pairs(self.score_bias, mask, x.size(1))
        # requested weights need padded rows, so padding is not removed then
        x, packing = unpad(x, None if weights is not None else real, keys=x.size(1))
        own_mask: Tensor | None = mask
        window = self.window
        if window is not None:
            own_mask, window = restrict(mask, window, mask.size(3), weights is not None)
        own_real = real_positions(real, packing)
        layout = Layout(own_mask, packing, packing, weights, own_real, window, bias)
        for layer in self.layers:
            x = layer(x, layout)
        return Memory(pad(normalize(self.norm, x, layout.real), packing), mask)

    def flops(self, source: RowLengths) -> int:
        return encoder_flops(self, source)


class DecoderLayer(nn.Module):
    """A decoder layer: masked self-attention, cross-attention, and a feed-forward network."""

    @checked
    def __init__(self, config: LayerConfig) -> None:
        super().__init__()
        self.self_attention = _mixer(self, config, is_causal=True)
        self.self_residual = config.residual()
        self.cross_attention = config.attention()
        self.cross_residual = config.residual()
        self.feed_forward = config.feed_forward()
        self.feed_forward_residual = config.residual()

    def forward(
        self,
        x: States,
        memory: Float[Tensor, "_ source d_model"],
        layout: AnyLayout,
        memory_layout: AnyLayout,
    ) -> States:
        """Compute new states; the layouts restrict self-attention and cross-attention."""
        real = Layout.of(layout).real
        x = self.self_residual(
            x, lambda states: mixed_states(self.self_attention, states, layout), real
        )
        x = self.cross_residual(
            x, lambda states: self.cross_attention(states, memory, memory_layout)[0], real
        )
        return self.feed_forward_residual(
            x, lambda states: apply_network(self.feed_forward, states, real), real
        )

    def step(
        self,
        x: StepStates,
        write: Callable[[Any], Any],
        mask_bias: Float[Tensor, "sentences heads width slots"],
        memory: KeyValue,
        memory_mask_bias: Float[Tensor, "sentences heads width source"],
    ) -> StepStates:
        """
        Process one more token of each hypothesis.

        All hypotheses of a sentence are batched as queries against one copy of its keys and values.
        `write` adds the mixer's results for the newest tokens to the cache, and returns the cached
        results of all tokens. Both biases are minus infinity where a query may not attend.
        """
        own, cross = self.self_attention, self.cross_attention

        def cross_attend(states: Tensor) -> Tensor:
            return cross.attend_cached(cross.project_query(states), memory, memory_mask_bias)

        x = self.self_residual(x, lambda states: own.step(states, write, mask_bias))
        x = self.cross_residual(x, cross_attend)
        return self.feed_forward_residual(x, self.feed_forward)


class Decoder(nn.Module, TargetDecoder):
    """
    A stack of decoder layers; the paper has six.

    Parameters
    ----------
    config : LayerConfig
        Sizes and settings of each layer.
    layers : int
        Number of layers.
    sharing : sequence of int, optional
        For each layer the index of its weights, from 1; layers with the same index share their
        weights.
    """

    @checked
    def __init__(
        self, config: LayerConfig, layers: int, sharing: Sequence[int] | None = None
    ) -> None:
        super().__init__()
        self.width, self.causal = config.d_model, config.causal_mask
        self.window = _window(config, Window.before_and_at)
        self.layers: Parts[DecoderLayer] = _layers(DecoderLayer, config, layers, sharing)
        self.norm = config.output_norm()
        self.score_bias = _score_bias(config)

    def forward(
        self,
        x: States,
        memory: Float[Tensor, "batch source d_model"],
        memory_mask: Bool[Tensor, "_ _ _ source"] | None = None,
        weights: WeightLists = None,
        real: Bool[Tensor, "batch time"] | None = None,
    ) -> States:
        """
        Run all layers on a given target, with the causal mask of section 3.2.3.

        Parameters
        ----------
        x : Tensor
            Embedded target tokens with their positions, shifted right by one.
        memory : Tensor
            Output of the encoder.
        memory_mask : Tensor, optional
            True at real source tokens; everywhere if None. It may have an axis of heads or queries.
        weights : pair of lists, optional
            Lists to which the weights of self-attention and cross-attention are appended.
        real : Tensor, optional
            True at real tokens, which come first in each row; everywhere if None. The states of
            padding may be zero.

        Returns
        -------
        Tensor
            The state at position i predicts target token i.
        """
        own_weights, cross_weights = (None, None) if weights is None else weights
        if memory_mask is not None:
            memory_mask = check_mask("Decoder", memory_mask, x.size(0))
        mask, window = self._mask(x, real, weights is not None)
        bias = bias_of_pairs(self.score_bias, mask, x.size(1))
        most_keys = max(x.size(1), memory.size(1))
        packing = memory_packing = None
        real_memory = _real_keys(memory_mask)
        # a mask per head or query needs padded rows
        differs = memory_mask is not None and real_memory is None
        # requested weights need padded rows, so padding is not removed then
        if weights is None and not differs:
            x, packing = unpad(x, real, most_keys)
            memory, memory_packing = unpad(memory, real_memory, most_keys)
        own_real = real_positions(real, packing)
        layout = Layout(mask, packing, packing, own_weights, own_real, window, bias)
        memory_layout = Layout(memory_mask, packing, memory_packing, cross_weights)
        for layer in self.layers:
            x = layer(x, memory, layout, memory_layout)
        return pad(normalize(self.norm, x, layout.real), packing)

    def _mask(
        self, x: Tensor, real: Tensor | None, dense: bool
    ) -> tuple[Tensor | None, Window | None]:
        """Return the mask of a given target, and the window unless the mask includes it."""
        if self.window is not None:  # the window also hides later positions
            return restrict(None, self.window, x.size(1), dense, x.device)
        if self.causal:
            return causal_mask(x.size(1), x.device), None
        everywhere = x.new_ones(x.shape[:2], dtype=torch.bool) if real is None else real
        return everywhere[:, None, None], None  # (batch, 1, 1, time)

    def flops(self, target: RowLengths, memory: RowLengths) -> DecoderFlops:
        return decoder_flops(self, target, memory)

    def _cache_dtype(self, sentences: int, dtype: torch.dtype) -> torch.dtype:
        """Choose the type of the keys and values of a search; inference may use smaller types."""
        return dtype

    def decode(
        self,
        x: States,
        memory: Memory,
        weights: WeightLists = None,
        real: Bool[Tensor, "batch time"] | None = None,
    ) -> States:
        return self(x, memory.states, memory.mask, weights, real)

    def start(self, memory: Memory) -> DecoderState:
        dtype = self._cache_dtype(len(memory.states), memory.states.dtype)
        kv = (layer.cross_attention.project_kv(memory.states) for layer in self.layers)
        # every step reads contiguous keys and values of each head
        projected = tuple(KeyValue(*(part.to(dtype).contiguous() for part in both)) for both in kv)
        mask_bias = mask_to_bias(memory.mask, projected[0].keys.dtype)
        window = None if self.window is None else self.window.width
        mixer = self.layers.first.self_attention
        cache: TargetCache = mixer.start_cache(len(projected), projected[0], window)
        return DecoderState(cache, projected, mask_bias, 0)

    def step(self, x: StepStates, state: DecoderState) -> tuple[StepStates, DecoderState]:
        cache = state.cache.advance(x.size(1))
        states = self._step_layers(x, cache, state.memory, state.mask_bias)
        return states, DecoderState(cache, state.memory, state.mask_bias, state.length + 1)

    def _step_layers(
        self, x: Tensor, cache: TargetCache, memory: Sequence[KeyValue], mask_bias: Tensor
    ) -> Tensor:
        """Run all layers on one more token of each hypothesis; `x` (sentences, width, d_model)."""
        width, heads = x.size(1), self.layers.first.cross_attention.heads
        own_bias = bias_of_slots(self.score_bias, cache.mask_bias, heads)  # (.., width, slots)
        memory_bias = mask_bias.repeat(1, heads, width, 1)  # (sentences, heads, width, source)
        for index, layer in enumerate(self.layers):
            x = layer.step(x, partial(cache.write, index), own_bias, memory[index], memory_bias)
        return self.norm(x)


def _layers(
    kind: Callable[[LayerConfig], Layer],
    config: LayerConfig,
    layers: int,
    sharing: Sequence[int] | None,
) -> Parts[Layer]:
    """Build the layers of a stack; layers with the same index are the same module."""
    numbers = range(1, layers + 1) if sharing is None else sharing
    if len(numbers) != layers:
        raise SettingError(
            f"`sharing` must have a number for each of {layers} layers, but has {len(numbers)}."
        )
    if config.networks.layers and len({*numbers}) < layers:
        raise SettingError(
            "`sharing` must be None if `networks` replaces the networks of some layers, but got "
            f"{list(numbers)}."
        )
    built: dict[int, Layer] = {}
    for layer, number in enumerate(numbers, start=1):
        if number not in built:
            built[number] = kind(config.of_layer(layer))
    return Parts(built[number] for number in numbers)


def _real_keys(mask: Tensor | None) -> Tensor | None:
    """Return a mask of real keys (batch, keys); None for no mask, or one per head or query."""
    if mask is None or mask.size(1) != 1 or mask.size(2) != 1:
        return None
    return mask[:, 0, 0]


def _mixer(layer: nn.Module, config: LayerConfig, is_causal: bool) -> Any:
    """Build a layer's mixer; refuse a `Mixer` for the other stack (encoder or decoder)."""
    mixer = config.self_attention()
    if isinstance(mixer, Mixer) and isinstance(mixer, TargetMixer) != is_causal:
        must = "be a TargetMixer, which reads no later positions"
        if not is_causal:
            must = "not be a TargetMixer, because an encoder reads all positions"
        raise SettingError(
            f"`mixer` of {type(layer).__name__} must {must}, but got {type(mixer).__name__}."
        )
    return mixer


def _score_bias(config: LayerConfig) -> ScoreBias | None:
    """Build the bias that all layers of a stack add to the scores of self-attention."""
    return None if config.score_bias is None else config.score_bias(config)


def _window(config: LayerConfig, of: Callable[[int | None], Window | None]) -> Window | None:
    """Return the window of a stack, if it has self-attention and a window."""
    return of(config.window if config.mixer is None else None)
