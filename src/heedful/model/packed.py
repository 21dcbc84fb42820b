"""
A trained Transformer made ready for a search: every product with its weights laid out.

The model stays the same modules in the same places and computes the same; only what multiplies by
a matrix is exchanged (`heedful.model.layouts`). The tests hold it to the model that it was.
"""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn

from heedful.model.attention import MultiHeadAttention
from heedful.model.layouts import Int8Linear, PackedLinear
from heedful.model.stacks import DecoderLayer
from heedful.model.transformer import Transformer

LayOut = Callable[[Tensor, Tensor | None], nn.Module]
LAYOUTS: dict[str, LayOut] = {"packed": PackedLinear, "int8": Int8Linear}


class PackedAttention(MultiHeadAttention):
    """
    Attend as `MultiHeadAttention` does, by products that are laid out.

    Parameters
    ----------
    plain : MultiHeadAttention
        Whose weights are taken.
    lay_out : callable
        From a matrix and a bias to a module that multiplies.
    to_itself : bool
        Whether a sequence looks at itself, so that one product makes queries, keys and values.

    Notes
    -----
    Looking at something else takes two products, for queries and for keys with values.
    """

    def __init__(self, plain: MultiHeadAttention, lay_out: LayOut, to_itself: bool) -> None:
        nn.Module.__init__(self)
        self.d_model, self.heads = plain.d_model, plain.heads
        self.d_k, self.d_v, self.widths = plain.d_k, plain.d_v, plain.widths
        weight, bias = plain.project_in.weight, plain.project_in.bias
        cuts = [0, 3] if to_itself else [0, 1, 3]
        self.parts = nn.ModuleDict()
        for first, last in pairwise(cuts):
            rows = slice(sum(self.widths[:first]), sum(self.widths[:last]))
            part = lay_out(weight[rows], None if bias is None else bias[rows])
            self.parts[f"{first}:{last}"] = part
        out = plain.project_out
        self.add_module("project_out", lay_out(out.weight, out.bias))

    def _project(self, x: Tensor, first: int, last: int) -> Tensor:
        """Multiply by the part that was laid out."""
        out: Tensor = self.parts[f"{first}:{last}"](x)
        return out


def pack(model: Transformer, layout: str) -> Transformer:
    """
    Lay out all weights of a model that will not change any more.

    Parameters
    ----------
    model : Transformer
        On the processor; changed in place, cannot be trained or saved afterwards.
    layout : {'packed', 'int8'}
        The same numbers in another order, or rounded to 8 bits (the model must be fp32).

    Returns
    -------
    Transformer
        The same object, in evaluation mode.

    Notes
    -----
    The embedding tables stay as they are: their rows are looked up, not multiplied.
    """
    lay_out = LAYOUTS[layout]
    if layout == "int8":
        model.short_type = torch.bfloat16
    with torch.no_grad():
        table, bias = model.output()
        model.projection = lay_out(table, bias)
        for layer in [*model.encoder.layers, *model.decoder.layers]:
            layer.self_attention = PackedAttention(layer.self_attention, lay_out, True)
            if isinstance(layer, DecoderLayer):
                layer.cross_attention = PackedAttention(layer.cross_attention, lay_out, False)
            for name in ("widen", "narrow"):
                linear = getattr(layer.feed_forward, name)
                layer.feed_forward.add_module(name, lay_out(linear.weight, linear.bias))
    return model.eval()
