"""
A trained model optimized for inference, with prepacked weights and compiled layers.

Loading a run for translation optimizes its model (`heedful.runs.run`). Modules are replaced by
optimized modules with the same interface; all else is unchanged. The tests compare the result with
the plain model.

In the plain modules several short passes over memory follow each matrix product; in 8 bits there
are about twelve passes. They scale, add the bias and the residual, normalize, find the maximum of
each row, and round. Compiled layers do this work while the product is still in the processor's
cache. They also attend to keys and values without copying them.
"""

import copy
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.kernels.api import (
    LINEAR_FACTORIES,
    AttendedStates,
    Int8Linear,
    LinearFactory,
    NativeBf16Linear,
    NativeFp32Linear,
    NativeInt8Linear,
    NativeLayers,
    NativeLinear,
    can_multiply,
    can_multiply_bf16,
    log_probabilities,
    processor_flags,
)
from heedful.model.attention import MultiHeadAttention
from heedful.model.embedding import OutputLayer
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.feed_forward import ACTIVATIONS, FeedForward
from heedful.model.halves import Memory, SourceMask, States
from heedful.model.known_layers import is_known, native_activation
from heedful.model.kv_cache import KVCache, mask_to_bias
from heedful.model.layers import Decoder, DecoderLayer, Encoder, EncoderLayer
from heedful.model.parts import KeyValue, TargetCache
from heedful.model.relations import Places, Rotation
from heedful.model.residual import ScaledNorm
from heedful.model.score_bias import DistanceTable
from heedful.model.weights import HasWeightNorm

_NATIVE_FACTORIES: dict[str, LinearFactory] = {
    "packed": NativeFp32Linear,
    "bf16": NativeBf16Linear,
    "int8": NativeInt8Linear,
}


def optimize_for_inference(model: EncoderDecoder, kind: str, native: bool = True) -> EncoderDecoder:
    """
    Prepack the weights of a trained model in place; return the model in evaluation mode.

    `kind`: ``packed``, the same values in another order; ``int8``, values rounded to 8 bits; or
    ``bf16``, if `can_round_to_bf16`. The kinds ``int8`` and ``bf16`` need a model in fp32.
    `native`: use compiled functions if they are available. Embeddings are looked up, not
    multiplied, so they stay unchanged. Weights with weight normalization are computed once. In
    recurrent and convolutional models, only the output matrix and any experts are prepacked.
    """
    native = native and all(map(can_multiply, _inner_widths(model)))
    # models with weights in bf16 are computed by oneDNN
    native = native and model.output.weight.dtype == torch.float32
    make_linear = _NATIVE_FACTORIES[kind] if native else LINEAR_FACTORIES[kind]
    with torch.no_grad():
        for layer in list(model.modules()):
            if isinstance(layer, HasWeightNorm):
                layer.fold_weight_norm()
            if isinstance(layer, FeedForward):  # including networks inside other networks
                _pack_network(layer, make_linear)
            if isinstance(layer, EncoderLayer | DecoderLayer):
                if isinstance(layer.self_attention, MultiHeadAttention):  # not another mixer
                    layer.self_attention = PrepackedAttention(layer.self_attention, make_linear)
                if isinstance(layer, DecoderLayer):
                    cross = PrepackedCrossAttention(layer.cross_attention, make_linear)
                    layer.cross_attention = cross
        # the largest matrix is packed last, after the layers have freed their plain weights
        model.output = CompiledOutput(model.output, make_linear)
    if isinstance(model.decoder, Decoder):
        if can_compile(model.decoder):
            model.decoder = CompiledDecoder(model.decoder)
        elif kind == "int8":
            model.decoder = ShortCacheDecoder(model.decoder)
    if isinstance(model.encoder, Encoder) and can_compile(model.encoder):
        model.encoder = CompiledEncoder(model.encoder)
    return model.eval()


def can_round_to_bf16(model: EncoderDecoder) -> bool:
    """Return whether compiled functions can run all layers of an fp32 model in bf16."""
    stacks = (model.encoder, model.decoder)
    return (
        compiles_bf16()
        and all(map(can_multiply, _inner_widths(model)))
        and all(isinstance(stack, Encoder | Decoder) and is_known(stack) for stack in stacks)
    )


def compiles_bf16() -> bool:
    """
    Return whether compiled functions compute in bf16 on this processor.

    With AMX instructions oneDNN multiplies many rows faster than compiled functions do. So
    processors with AMX use oneDNN.
    """
    return can_multiply_bf16() and "amx_bf16" not in processor_flags()


def is_compiled(model: EncoderDecoder) -> bool:
    """Return whether a search runs in compiled functions, so that rows do not affect each other."""
    return isinstance(model.decoder, CompiledDecoder) and isinstance(model.encoder, CompiledEncoder)


def _inner_widths(model: EncoderDecoder) -> set[int]:
    """Return the input widths of all linear layers."""
    widths = {model.output.weight.size(1)}
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            widths |= {module.qkv_proj.in_features, module.out_proj.in_features}
        elif isinstance(module, FeedForward):
            widths |= {module.linear1.in_features, module.linear2.in_features}
    return widths


def _pack_network(network: FeedForward, make_linear: LinearFactory) -> None:
    """Prepack both matrices; after a ReLU, the input of the second matrix is never negative."""
    for name in ("linear1", "linear2"):
        linear = getattr(network, name)
        is_relu = network.activation is ACTIVATIONS["relu"] and not network.gated
        after_relu = name == "linear2" and is_relu
        if after_relu and (make_linear is Int8Linear or make_linear is NativeInt8Linear):
            network.add_module(name, make_linear(linear.weight, linear.bias, nonnegative=True))
        else:
            network.add_module(name, make_linear(linear.weight, linear.bias))


class PrepackedAttention(MultiHeadAttention):
    """Self-attention with prepacked or quantized projections."""

    def __init__(self, plain: MultiHeadAttention, make_linear: LinearFactory) -> None:
        nn.Module.__init__(self)
        self.d_model, self.heads, self.kv_heads = plain.d_model, plain.heads, plain.kv_heads
        self.d_k, self.d_v, self.widths = plain.d_k, plain.d_v, plain.widths
        # for unscaled scores, the packed weights contain the factor sqrt(d_k)
        is_folded = plain.score == "unscaled" and plain.norms is None
        self.score, self.norms = "scaled" if is_folded else plain.score, plain.norms
        self.energy, self.scorer = plain.energy, plain.scorer
        self.rotation, self.relation = plain.rotation, plain.relation
        self.dropout = None  # dropout is only for training
        self._pack(plain, make_linear)
        self.add_module("out_proj", make_linear(plain.out_proj.weight, plain.out_proj.bias))

    def _pack(self, plain: MultiHeadAttention, make_linear: LinearFactory) -> None:
        """Prepack W^Q, W^K and W^V as one matrix."""
        self.add_module("qkv_proj", make_linear(*plain.weights()))


class PrepackedCrossAttention(PrepackedAttention):
    """Cross-attention with prepacked projections: one for queries, one for keys and values."""

    q_proj: nn.Module
    kv_proj: nn.Module

    def _pack(self, plain: MultiHeadAttention, make_linear: LinearFactory) -> None:
        weight, bias = plain.weights()
        width = self.widths[0]
        for name, rows in (("q_proj", slice(width)), ("kv_proj", slice(width, None))):
            self.add_module(name, make_linear(weight[rows], None if bias is None else bias[rows]))

    def _queries(self, x: Tensor) -> Tensor:
        return self.q_proj(x)

    def _keys_values(self, x: Tensor) -> Tensor:
        return self.kv_proj(x)


class PrepackedOutput(OutputLayer):
    """`OutputLayer` with a prepacked or quantized matrix in addition to the plain matrix."""

    def __init__(self, plain: OutputLayer, make_linear: LinearFactory) -> None:
        super().__init__(plain.weight, plain.bias)
        self.linear = make_linear(plain.weight, plain.bias)

    def forward(
        self, states: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocabulary"]:
        return self.linear(states)


_Norm = nn.LayerNorm | nn.RMSNorm
# For more positions, batched matrix products are faster than attention row by row.
_LONG = 256
# Up to this many sentences, rounding queries to bf16 costs more time than smaller keys save.
_FEW_SENTENCES = 2


def can_compile(stack: Encoder | Decoder) -> bool:
    """Return whether compiled functions support all linear layers and other parts of a stack."""
    layers: list[EncoderLayer | DecoderLayer] = [*stack.layers]
    return is_known(stack) and all(
        isinstance(product, NativeLinear) for layer in layers for product in products_of(layer)
    )


class CompiledDecoder(Decoder):
    """A `Decoder` whose step is one call of compiled functions."""

    def __init__(self, plain: Decoder) -> None:
        _take_over(self, plain)
        self.native, self.distances = _compiled_layers(plain), _distances(plain)
        self.rotation = _rotation(plain)

    def _cache_dtype(self, sentences: int, dtype: torch.dtype) -> torch.dtype:
        return self.native.dtype

    def _step_layers(
        self, x: Tensor, cache: TargetCache, memory: Sequence[KeyValue], mask_bias: Tensor
    ) -> Tensor:
        """Process one more token of each hypothesis through all layers."""
        assert isinstance(cache, KVCache)  # `can_compile` has checked this
        distances = None if self.distances is None else self.distances.up_to(cache.filled)
        own_mask = cache.mask_bias.float()
        circle = None
        if self.rotation is not None:
            place = Places.of_newest(own_mask.unsqueeze(1)).numbers  # (1, 1)
            circle = _rows_of_circle(self.rotation, int(place), 1)
        own = AttendedStates(cache.layers, own_mask, cache.filled, distances, True, circle)
        source = AttendedStates(memory, mask_bias.flatten(1, 2).float(), mask_bias.size(3))
        return self.native.run(x, own, source)


class ShortCacheDecoder(Decoder):
    """A `Decoder` that stores keys and values in bf16 if a batch has more than two sentences."""

    def __init__(self, plain: Decoder) -> None:
        _take_over(self, plain)

    def _cache_dtype(self, sentences: int, dtype: torch.dtype) -> torch.dtype:
        return torch.bfloat16 if sentences > _FEW_SENTENCES else dtype


class CompiledEncoder(Encoder):
    """
    An `Encoder` that runs in one call of compiled functions.

    The plain modules are used for long sentences, windows, masks per head or query, and requested
    attention weights.
    """

    def __init__(self, plain: Encoder) -> None:
        _take_over(self, plain)
        self.native, self.distances = _compiled_layers(plain), _distances(plain)
        self.rotation = _rotation(plain)

    def encode(self, x: States, mask: SourceMask, weights: list[Tensor] | None = None) -> Memory:
        """Run all layers."""
        is_masked = self.window is not None or mask.size(1) * mask.size(2) > 1  # per head or query
        if weights is not None or is_masked:
            return super().encode(x, mask, weights)
        if x.size(1) <= _LONG:
            return Memory(self._run(x, mask), mask)
        # Short and long sentences are computed separately, so that the states of a sentence do not
        # depend on the longest sentence of its batch.
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
        """Run all layers with the compiled functions."""
        batch, time = x.shape[:2]
        stack = self.native.stack
        keys, values = (
            torch.empty(batch, stack.heads, time, width, dtype=self.native.dtype)
            for width in (stack.d_k, stack.d_v)
        )
        # every layer overwrites the keys and values
        layers = [(keys, values)] * len(self.layers)
        distances = None if self.distances is None else self.distances.up_to(time)
        circle = None if self.rotation is None else _rows_of_circle(self.rotation, 0, time)
        mask_bias = _rows_of_mask_bias(mask)
        attended = AttendedStates(layers, mask_bias, time, distances, circle=circle)
        return self.native.run(x, attended)


class CompiledOutput(PrepackedOutput):
    """`PrepackedOutput` with a compiled log-softmax in two passes over the vocabulary."""

    def log_probabilities(
        self, states: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocabulary"]:
        if states.dim() != 2 or not isinstance(self.linear, NativeLinear):
            return super().log_probabilities(states)
        return log_probabilities(self.linear, states)


def _take_over(new: nn.Module, plain: nn.Module) -> None:
    """Give a new module all attributes of the plain module that it replaces."""
    nn.Module.__init__(new)
    vars(new).update(vars(plain))


def _rows_of_mask_bias(mask: Tensor) -> Tensor:
    """Convert a mask for the compiled functions: minus infinity where attention is forbidden."""
    return mask_to_bias(mask, torch.float32).flatten(1, 2)


def _compiled_layers(plain: Encoder | Decoder) -> NativeLayers:
    """Collect the arguments that the compiled functions need for a stack."""
    layers: list[EncoderLayer | DecoderLayer] = [*plain.layers]
    first, norms = _norms(layers, _with_factor(plain.norm))
    products = [[p for p in products_of(layer) if isinstance(p, NativeLinear)] for layer in layers]
    heads = layers[0].self_attention
    activation = native_activation([layer.feed_forward for layer in layers])
    assert activation is not None  # `can_compile` has checked this
    return NativeLayers(products, norms, first, heads.heads, heads.d_k, heads.d_v, activation)


def _distances(plain: Encoder | Decoder) -> DistanceTable | None:
    """Tabulate the bias that a stack adds to the scores of self-attention, if any."""
    return None if plain.score_bias is None else DistanceTable(plain.score_bias)


def _rotation(plain: Encoder | Decoder) -> Rotation | None:
    """Return the rotation of self-attention, which is the same in all layers (`can_compile`)."""
    return plain.layers.first.self_attention.rotation


def _rows_of_circle(rotation: Rotation, first: int, count: int) -> tuple[Tensor, Tensor]:
    """Return the cosines and sines of some positions."""
    circle = rotation.circle(first + count)
    assert circle is not None  # `can_compile` has checked this
    return circle[0][first : first + count], circle[1][first : first + count]


def _with_factor(norm: nn.Module) -> nn.Module:
    """Return a scaled norm with its factor in the weights; other norms are returned unchanged."""
    if not isinstance(norm, ScaledNorm):
        return norm
    scaled = copy.deepcopy(norm.norm)
    with torch.no_grad():
        for weight in scaled.parameters():
            weight.mul_(norm.factor)
    return scaled


def _norms(
    layers: Sequence[EncoderLayer | DecoderLayer], last: nn.Module
) -> tuple[_Norm | None, list[_Norm]]:
    """
    List the norm before the first layer, if any, and the norm after each sub-layer.

    In a pre-norm stack, the norm after a sub-layer belongs to the next sub-layer. The norm after
    the last sub-layer is the final norm of the stack.
    """
    norms: list[nn.Module] = []
    for layer in layers:
        cross = [layer.cross_residual] if isinstance(layer, DecoderLayer) else []
        for residual in (layer.self_residual, *cross, layer.feed_forward_residual):
            norms += residual.children()
    known = [norm for norm in (*norms, last) if isinstance(norm, _Norm)]
    return (known[0], known[1:]) if isinstance(last, _Norm) else (None, known)


def products_of(layer: EncoderLayer | DecoderLayer) -> list[nn.Module]:
    """List the linear layers of a layer in execution order."""
    own, network = layer.self_attention, layer.feed_forward
    assert isinstance(network, FeedForward)  # `can_compile` has checked this
    products: list[nn.Module] = [own.qkv_proj, own.out_proj]
    if isinstance(layer, DecoderLayer):
        cross = layer.cross_attention
        assert isinstance(cross, PrepackedCrossAttention)
        # `kv_proj` is omitted, because it projects the source once per sentence, outside the steps
        products += [cross.q_proj, cross.out_proj]
    return [*products, network.linear1, network.linear2]
