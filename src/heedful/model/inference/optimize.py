"""
A trained model optimised for inference, with prepacked weights.

Loading a run to translate calls it (`heedful.runs.run`). Modules are replaced by others with the
same interface (`heedful.model.inference.quantized` and `heedful.model.inference.compiled`), and
nothing else changes. The tests compare the result with the model before.
"""

import torch

from heedful.model.attention import MultiHeadAttention
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.feed_forward import ACTIVATIONS, FeedForward
from heedful.model.inference.compiled import (
    CompiledDecoder,
    CompiledEncoder,
    CompiledOutput,
    ShortCacheDecoder,
    can_compile,
    is_known,
)
from heedful.model.inference.quantized import (
    LINEAR_FACTORIES,
    Int8Linear,
    LinearFactory,
    PrepackedAttention,
    PrepackedCrossAttention,
)
from heedful.model.layers import Decoder, DecoderLayer, Encoder, EncoderLayer
from heedful.model.memory import HasWeightNorm
from heedful.model.native.compile import processor_flags
from heedful.model.native.product import (
    NativeBf16Linear,
    NativeFp32Linear,
    NativeInt8Linear,
    can_multiply,
    can_multiply_bf16,
)

_NATIVE_FACTORIES: dict[str, LinearFactory] = {
    "packed": NativeFp32Linear,
    "bf16": NativeBf16Linear,
    "int8": NativeInt8Linear,
}


def optimize_for_inference(model: EncoderDecoder, kind: str, native: bool = True) -> EncoderDecoder:
    """
    Prepack all weights of a model that will not change any more.

    `kind`: ``packed``, the same numbers in another order; ``int8``, rounded to 8 bits; or ``bf16``,
    where `can_round_to_bf16`. For the last two the model must be fp32. `native`: whether compiled
    functions are used where there are some. Returns the same object, in evaluation mode.

    The embedding tables stay as they are: their rows are looked up, not multiplied. So do recurrent
    layers and convolutions, whose weight normalisation is folded into the weights: of such models
    only the output matrix is prepacked or rounded.
    """
    native = native and all(map(can_multiply, _inner_widths(model)))
    # a model that is bf16 itself is multiplied by oneDNN
    native = native and model.output.weight.dtype == torch.float32
    make_linear = _NATIVE_FACTORIES[kind] if native else LINEAR_FACTORIES[kind]
    with torch.no_grad():
        for layer in list(model.modules()):
            if isinstance(layer, HasWeightNorm):
                layer.fold_weight_norm()
            if isinstance(layer, FeedForward):  # also inside another network
                _pack_network(layer, make_linear)
            if isinstance(layer, EncoderLayer | DecoderLayer):
                if isinstance(layer.self_attention, MultiHeadAttention):  # others stay
                    layer.self_attention = PrepackedAttention(layer.self_attention, make_linear)
                if isinstance(layer, DecoderLayer):
                    cross = PrepackedCrossAttention(layer.cross_attention, make_linear)
                    layer.cross_attention = cross
        # the largest matrix last: the layers have freed their plain weights by then
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
    """
    Decide whether a model in fp32 can compute in bf16 by compiled functions, all of it.

    With AMX instructions oneDNN multiplies many rows faster, so it goes on there.
    """
    stacks = (model.encoder, model.decoder)
    return (
        can_multiply_bf16()
        and "amx_bf16" not in processor_flags()
        and all(map(can_multiply, _inner_widths(model)))
        and all(isinstance(one, Encoder | Decoder) and is_known(one) for one in stacks)
    )


def is_compiled(model: EncoderDecoder) -> bool:
    """Decide whether a search runs in compiled functions, where each row is computed alone."""
    return isinstance(model.decoder, CompiledDecoder) and isinstance(model.encoder, CompiledEncoder)


def _inner_widths(model: EncoderDecoder) -> set[int]:
    """List the input widths of all products."""
    widths = {model.output.weight.size(1)}
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            widths |= {module.qkv_proj.in_features, module.out_proj.in_features}
        elif isinstance(module, FeedForward):
            widths |= {module.linear1.in_features, module.linear2.in_features}
    return widths


def _pack_network(network: FeedForward, make_linear: LinearFactory) -> None:
    """Prepack both matrices; the output of a ReLU is never negative."""
    for name in ("linear1", "linear2"):
        linear = getattr(network, name)
        after_relu = name == "linear2" and network.activation is ACTIVATIONS["relu"]
        if after_relu and (make_linear is Int8Linear or make_linear is NativeInt8Linear):
            network.add_module(name, make_linear(linear.weight, linear.bias, nonnegative=True))
        else:
            network.add_module(name, make_linear(linear.weight, linear.bias))
