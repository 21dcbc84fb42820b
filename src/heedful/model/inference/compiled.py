"""
Encoder and decoder in fp32, bf16 or 8 bits, all layers in one call of compiled functions.

In the plain modules a product is followed by several short passes over memory, in 8 bits by a
dozen: scale, add the bias, add the residual, normalise, find the largest number of each row, round.
Here they follow each other while the numbers are in the cache (`heedful.model.native`),
and attention reads keys and values in place. The result is that of the plain modules up to
rounding; the tests hold the two together.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.model.attention import MultiHeadAttention
from heedful.model.feed_forward import ACTIVATIONS, FeedForward
from heedful.model.inference.native_layers import AttendedStates, NativeLayers, log_probabilities
from heedful.model.inference.quantized import PrepackedCrossAttention, PrepackedOutput
from heedful.model.kv_cache import KVCache, mask_to_bias
from heedful.model.layers import Decoder, DecoderLayer, Encoder, EncoderLayer
from heedful.model.memory import Memory
from heedful.model.mixer import TargetCache
from heedful.model.native.product import NativeLinear
from heedful.model.projections import KeyValue
from heedful.model.residual import PostNorm, PreNorm

# Beyond this many positions batched products are faster than attention row by row.
_LONG = 256
# With this many or fewer turning queries into bf16 and back costs more than it spares in reading.
_FEW_SENTENCES = 2


def can_compile(stack: Encoder | Decoder) -> bool:
    """Decide whether the layers of a stack can be compiled: their products already are."""
    layers: list[EncoderLayer | DecoderLayer] = [*stack.layers]
    return is_known(stack) and all(
        isinstance(one, NativeLinear) for layer in layers for one in products_of(layer)
    )


def is_known(stack: Encoder | Decoder) -> bool:
    """Decide whether the compiled functions know these layers."""
    layers: list[EncoderLayer | DecoderLayer] = [*stack.layers]
    # they know products of queries and keys alone
    attentions = [layer.self_attention for layer in layers]
    if not all(isinstance(one, MultiHeadAttention) and one.energy is None for one in attentions):
        return False
    closed = isinstance(stack.norm, nn.LayerNorm)
    wirings = [one for one in stack.modules() if isinstance(one, PostNorm | PreNorm)]
    return all(one.residual and isinstance(one.norm, nn.LayerNorm) for one in wirings) and all(
        isinstance(layer.feed_forward, FeedForward)
        and layer.feed_forward.activation is ACTIVATIONS["relu"]
        and (closed or isinstance(layer.feed_forward_residual, PostNorm))
        for layer in layers
    )


class CompiledDecoder(Decoder):
    """A `Decoder` whose step is one call of compiled functions."""

    def __init__(self, plain: Decoder) -> None:
        _take_over(self, plain)
        self.native = _compiled(plain)

    def _cache_dtype(self, sentences: int, dtype: torch.dtype) -> torch.dtype:
        return self.native.dtype

    def _step_layers(
        self,
        x: Float[Tensor, "sentences width d_model"],
        cache: TargetCache,
        memory: Sequence[KeyValue],
        mask_bias: Float[Tensor, "sentences 1 1 source"],
    ) -> Float[Tensor, "sentences width d_model"]:
        """
        Process one more token of each hypothesis through all layers.

        `mask_bias`: minus infinity at padding of the source, else zero.

        Section 3.1, decoder: self-attention, attention to the memory, feed-forward network.
        """
        assert isinstance(cache, KVCache)  # `can_compile` has seen to it
        own = AttendedStates(cache.layers, cache.mask_bias.float(), cache.filled)
        source = AttendedStates(memory, mask_bias.flatten(1, 2).float(), mask_bias.size(3))
        return self.native.run(x, own, source)


class ShortCacheDecoder(Decoder):
    """A `Decoder` that keeps keys and values in bf16, to read half as much in each step."""

    def __init__(self, plain: Decoder) -> None:
        _take_over(self, plain)

    def _cache_dtype(self, sentences: int, dtype: torch.dtype) -> torch.dtype:
        return torch.bfloat16 if sentences > _FEW_SENTENCES else dtype


class CompiledEncoder(Encoder):
    """
    An `Encoder` that is one call of compiled functions.

    Inputs whose attention weights are requested, very long sentences, windows, and masks with rows
    for queries use the plain modules.
    """

    def __init__(self, plain: Encoder) -> None:
        _take_over(self, plain)
        self.native = _compiled(plain)

    def encode(
        self,
        x: Float[Tensor, "batch time d_model"],
        mask: Bool[Tensor, "batch _ _ time"],
        weights: list[Tensor] | None = None,
    ) -> Memory:
        """Run all layers."""
        is_masked = self.window is not None or mask.size(1) * mask.size(2) > 1  # by query
        if weights is not None or is_masked:
            return super().encode(x, mask, weights)
        if x.size(1) <= _LONG:
            return Memory(self._run(x, mask), mask)
        # apart, so that what a sentence gets does not depend on the longest of its batch
        lengths = mask.flatten(1).sum(dim=1)  # (batch,)
        is_short = lengths <= _LONG
        states = torch.zeros_like(x)
        if is_short.any():
            most = int(lengths[is_short].max())
            states[is_short, :most] = self._run(x[is_short, :most], mask[is_short, ..., :most])
        if not is_short.all():
            states[~is_short] = super().encode(x[~is_short], mask[~is_short]).states
        return Memory(states, mask)

    def _run(
        self, x: Float[Tensor, "batch time d_model"], mask: Bool[Tensor, "batch 1 1 time"]
    ) -> Float[Tensor, "batch time d_model"]:
        """Run all layers by the compiled functions."""
        batch, time = x.shape[:2]
        stack = self.native.stack
        keys, values = (
            torch.empty(batch, stack.heads, time, width, dtype=self.native.dtype)
            for width in (stack.d_k, stack.d_v)
        )
        # every layer writes them anew
        layers = [(keys, values)] * len(self.layers)
        attended = AttendedStates(layers, _rows_of_mask_bias(mask), time)
        return self.native.run(x, attended)


class CompiledOutput(PrepackedOutput):
    """`PrepackedOutput` whose log-softmax is compiled: two passes over the vocabulary."""

    def log_probabilities(
        self, states: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocabulary"]:
        if states.dim() != 2 or not isinstance(self.linear, NativeLinear):
            return super().log_probabilities(states)
        return log_probabilities(self.linear, states)


def _take_over(new: nn.Module, plain: nn.Module) -> None:
    """Give a module all that another one of its kind has, which is not used any more."""
    nn.Module.__init__(new)
    vars(new).update(vars(plain))


def _rows_of_mask_bias(mask: Tensor) -> Tensor:
    """Write a mask for the compiled functions: negative where attention is forbidden."""
    return mask_to_bias(mask, torch.float32).flatten(1, 2)


def _compiled(plain: Encoder | Decoder) -> NativeLayers:
    """Collect the arguments that the compiled functions need for a stack."""
    layers: list[EncoderLayer | DecoderLayer] = [*plain.layers]
    first, norms = _norms(layers, plain.norm)
    products = [[p for p in products_of(one) if isinstance(p, NativeLinear)] for one in layers]
    heads = layers[0].self_attention
    return NativeLayers(products, norms, first, heads.heads, heads.d_k, heads.d_v)


def _norms(
    layers: Sequence[EncoderLayer | DecoderLayer], last: nn.Module
) -> tuple[nn.LayerNorm | None, list[nn.LayerNorm]]:
    """
    List the norm before the first layer, if any, and the norm after each sub-layer.

    In a pre-norm stack the norm after a sub-layer is that of the next one, and the stack's own
    after the last.
    """
    norms: list[nn.Module] = []
    for layer in layers:
        cross = [layer.cross_residual] if isinstance(layer, DecoderLayer) else []
        for residual in (layer.self_residual, *cross, layer.feed_forward_residual):
            norms += residual.children()
    found = [one for one in (*norms, last) if isinstance(one, nn.LayerNorm)]
    return (found[0], found[1:]) if isinstance(last, nn.LayerNorm) else (None, found)


def products_of(layer: EncoderLayer | DecoderLayer) -> list[nn.Module]:
    """List the products of a layer in execution order."""
    own, network = layer.self_attention, layer.feed_forward
    assert isinstance(network, FeedForward)  # `can_compile` has seen to it
    found: list[nn.Module] = [own.qkv_proj, own.out_proj]
    if isinstance(layer, DecoderLayer):
        cross = layer.cross_attention
        assert isinstance(cross, PrepackedCrossAttention)
        # `kv_proj` projects the source, once per sentence and outside the steps
        found += [cross.q_proj, cross.out_proj]
    return [*found, network.linear1, network.linear2]
