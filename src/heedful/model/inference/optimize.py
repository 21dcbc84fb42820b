"""
A trained Transformer made ready for a search: every product with its weights laid out.

The model stays the same modules in the same places and computes the same; only what multiplies by
a matrix is exchanged (`heedful.model.inference.quantized`). The tests hold it to the model that it
was.
"""

import torch

from heedful.model.attention import MultiHeadAttention
from heedful.model.feed_forward import ACTIVATIONS, FeedForward
from heedful.model.inference.int8 import QuickDecoder, QuickEncoder, QuickOutput, can_be_quick
from heedful.model.inference.native.product import NativeLinear, can_multiply
from heedful.model.inference.quantized import LAYOUTS, Int8Linear, LayOut, PackedAttention
from heedful.model.layers import DecoderLayer
from heedful.model.transformer import Transformer

# With fewer sentences turning queries into bf16 and back costs more than it spares in reading.
_FEW_SENTENCES = 2


def make_ready(model: Transformer, layout: str, native: bool = True) -> Transformer:
    """
    Lay out all weights of a model that will not change any more.

    Parameters
    ----------
    model : Transformer
        On the processor; changed in place, cannot be trained or saved afterwards.
    layout : {'packed', 'int8'}
        The same numbers in another order, or rounded to 8 bits (the model must be fp32).
    native : bool, default True
        Whether compiled functions may do what stands between the products, where they can be had.

    Returns
    -------
    Transformer
        The same object, in evaluation mode.

    Notes
    -----
    The embedding tables stay as they are: their rows are looked up, not multiplied.
    """
    lay_out = LAYOUTS[layout]
    if layout == "int8" and native and all(map(can_multiply, _inner_widths(model))):
        lay_out = NativeLinear
    with torch.no_grad():
        for layer in [*model.encoder.layers, *model.decoder.layers]:
            layer.self_attention = PackedAttention(layer.self_attention, lay_out, True)
            if isinstance(layer, DecoderLayer):
                layer.cross_attention = PackedAttention(layer.cross_attention, lay_out, False)
            _pack_network(layer.feed_forward, lay_out)
        # the largest matrix last, when what was laid out has made room for it
        table, bias = model.output()
        model.projection = projection = lay_out(table, bias)
    if layout == "int8":
        model.short_type, model.short_above = torch.bfloat16, _FEW_SENTENCES
        if can_be_quick(model.decoder):
            model.decoder, model.short_above = QuickDecoder(model.decoder), 0
        if can_be_quick(model.encoder):
            model.encoder = QuickEncoder(model.encoder)
        if isinstance(projection, NativeLinear):
            model.quick_output = QuickOutput(projection)
    return model.eval()


def _inner_widths(model: Transformer) -> set[int]:
    """List how wide the inputs of all products are."""
    table, _ = model.output()
    widths = {table.size(1)}
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            widths |= {module.project_in.in_features, module.project_out.in_features}
        elif isinstance(module, FeedForward):
            widths |= {module.widen.in_features, module.narrow.in_features}
    return widths


def _pack_network(network: FeedForward, lay_out: LayOut) -> None:
    """Lay both matrices out; what comes out of a relu is never negative."""
    for name in ("widen", "narrow"):
        linear = getattr(network, name)
        after_relu = name == "narrow" and network.activation is ACTIVATIONS["relu"]
        if after_relu and (lay_out is Int8Linear or lay_out is NativeLinear):
            network.add_module(name, lay_out(linear.weight, linear.bias, nonnegative=True))
        else:
            network.add_module(name, lay_out(linear.weight, linear.bias))
