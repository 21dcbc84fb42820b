"""
Initial weights.

Those of a Transformer follow the authors' first public code (tensor2tensor 3d9c62f2) where the
paper is silent: Glorot's uniform bound on every product, taken over the shape of the product as it
was fused there, and normal numbers with standard deviation d_model^-0.5 for the embeddings.

Those of recurrent models are uniform within a range, as in Luong et al. 2015, or Glorot's for each
gate on its own, as in Joey NMT.
"""

import math

import torch
from torch import Tensor, nn

from heedful.model.attention import MultiHeadAttention
from heedful.model.embedding import LearnedPositions, TokenEmbedding
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.feed_forward import FeedForward
from heedful.model.layers import DecoderLayer
from heedful.model.recurrent.cells import RecurrentLayer
from heedful.model.recurrent.decoder import RecurrentDecoder
from heedful.model.recurrent.encoder import RecurrentEncoder


def initialise(model: EncoderDecoder, seed: int) -> None:
    """
    Draw the initial weights.

    The authors' first code fuses Q, K and V of self-attention into one product, and K and V of
    cross-attention into another. Their Glorot bounds are therefore smaller than those of single
    projections: sqrt(6 / (512 + 1536)) and sqrt(6 / (512 + 1024)) in the base model. Norms keep
    torch's gains of 1 and biases of 0.
    """
    generator = torch.Generator().manual_seed(seed)
    cross = {layer.cross_attention for layer in model.modules() if isinstance(layer, DecoderLayer)}
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            _draw_attention(module, module in cross, generator)
        elif isinstance(module, FeedForward):
            for linear in (module.linear1, module.linear2):
                _glorot(linear.weight, generator)
                nn.init.zeros_(linear.bias)
        elif isinstance(module, RecurrentEncoder | RecurrentDecoder):
            _draw_recurrent(module, generator)
        elif isinstance(module, LearnedPositions):
            _normal(module.weight, generator)
        elif isinstance(module, TokenEmbedding):
            side = model.encoder if module is model.embed_source else model.decoder
            _draw_table(module.weight, side, generator)
    if model.output.weight is not model.embed_target.weight:
        _draw_table(model.output.weight, model.decoder, generator)


def _draw_attention(module: MultiHeadAttention, is_cross: bool, generator: torch.Generator) -> None:
    """Draw the four projections; queries of cross-attention are a product of their own."""
    first = module.widths[0]
    parts = [slice(0, first), slice(first, None)] if is_cross else [slice(None)]
    for part in parts:
        _glorot(module.qkv_proj.weight[part], generator)
    _glorot(module.out_proj.weight, generator)
    for linear in (module.qkv_proj, module.out_proj):
        if linear.bias is not None:
            nn.init.zeros_(linear.bias)


def _draw_recurrent(
    module: RecurrentEncoder | RecurrentDecoder, generator: torch.Generator
) -> None:
    """Draw all weights of a recurrent encoder or decoder but the number g of a score."""
    wiring = module.wiring
    for name, weight in module.named_parameters():
        if weight.dim() == 0:
            continue
        if wiring.initialisation == "uniform":
            _uniform(weight, wiring.initial_range, generator)
        elif weight.dim() == 1 and not name.endswith("energy"):
            nn.init.zeros_(weight)
        else:
            matrix = weight.view(len(weight), -1)
            for gate in matrix.split(wiring.hidden_size if ".rnn." in name else len(weight)):
                _glorot(gate, generator)
    for layer in module.modules():
        if isinstance(layer, RecurrentLayer) and layer.cell == "lstm":
            for name, weight in layer.named_parameters():
                if "bias_ih" in name:  # the other bias is added to this one
                    weight.data[layer.width : 2 * layer.width] += wiring.forget_bias


def _draw_table(weight: Tensor, side: object, generator: torch.Generator) -> None:
    """Draw a table as the family of its side does."""
    wiring = side.wiring if isinstance(side, RecurrentEncoder | RecurrentDecoder) else None
    if wiring is not None and wiring.initialisation == "uniform":
        _uniform(weight, wiring.initial_range, generator)
    else:
        _normal(weight, generator)


@torch.no_grad()
def _glorot(weight: Tensor, generator: torch.Generator) -> None:
    """Draw uniformly within sqrt(6 / (fan in + fan out)) (Glorot and Bengio 2010)."""
    bound = math.sqrt(6.0 / sum(weight.shape))
    weight.uniform_(-bound, bound, generator=generator)


@torch.no_grad()
def _normal(weight: Tensor, generator: torch.Generator) -> None:
    """Draw with standard deviation d_model^-0.5; scaling by sqrt(d_model) makes it one."""
    weight.normal_(0.0, weight.size(1) ** -0.5, generator=generator)


@torch.no_grad()
def _uniform(weight: Tensor, bound: float, generator: torch.Generator) -> None:
    """Draw uniformly from -bound to bound."""
    weight.uniform_(-bound, bound, generator=generator)
