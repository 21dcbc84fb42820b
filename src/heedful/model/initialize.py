"""
Initial weights.

The paper does not specify initial weights, so a Transformer follows the authors' first public code
(tensor2tensor 3d9c62f2). Weights of linear layers are uniform within Glorot's bound. If that code
fuses several matrices into one, the bound is that of the fused matrix. Embeddings are normal with
standard deviation d_model^-0.5.

Encoders and decoders of other families draw their own initial weights.
"""

import torch
from torch import Tensor, nn

from heedful.model.attention import MultiHeadAttention
from heedful.model.embedding import LearnedPositions, TokenEmbedding
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.feed_forward import FeedForward
from heedful.model.initial_weights import glorot, table
from heedful.model.layers import DecoderLayer
from heedful.model.weights import DrawsWeights, Initialized


def initialize(model: EncoderDecoder, seed: int) -> None:
    """
    Draw the initial weights.

    The authors' first code fuses the projections to Q, K and V of self-attention into one matrix.
    It also fuses the projections to K and V of cross-attention. The Glorot bounds of fused matrices
    are smaller than the bounds of single projections. In the base model the fused bounds are sqrt(6
    / (512 + 1536)) and sqrt(6 / (512 + 1024)). Norms keep torch's gains of 1 and biases of 0.
    """
    generator = torch.Generator().manual_seed(seed)
    cross = {layer.cross_attention for layer in model.modules() if isinstance(layer, DecoderLayer)}
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            _draw_attention(module, module in cross, generator)
        elif isinstance(module, FeedForward):
            for linear in (module.linear1, module.linear2):
                # the gate and the gated values are separate matrices
                halves = 2 if module.gated and linear is module.linear1 else 1
                for weight in linear.weight.chunk(halves):
                    glorot(weight, generator)
                if linear.bias is not None:
                    nn.init.zeros_(linear.bias)
        elif isinstance(module, DrawsWeights):
            module.initialize(generator)
        elif isinstance(module, LearnedPositions):
            stack = model.encoder if module is model.source_positions else model.decoder
            _draw_table(module.weight, stack, generator)
        elif isinstance(module, TokenEmbedding):
            stack = model.encoder if module is model.embed_source else model.decoder
            _draw_table(module.weight, stack, generator)
    if model.output.weight is not model.embed_target.weight:
        _draw_table(model.output.weight, model.decoder, generator)


def _draw_attention(module: MultiHeadAttention, is_cross: bool, generator: torch.Generator) -> None:
    """Draw the four projections; in cross-attention, W^Q is a separate matrix."""
    first = module.widths[0]
    parts = [slice(0, first), slice(first, None)] if is_cross else [slice(None)]
    for part in parts:
        glorot(module.qkv_proj.weight[part], generator)
    glorot(module.out_proj.weight, generator)
    if module.energy is not None:
        for head in range(module.heads):  # a separate map from d_k numbers to one number
            glorot(module.energy[head : head + 1], generator)
    for linear in (module.qkv_proj, module.out_proj):
        if linear.bias is not None:
            nn.init.zeros_(linear.bias)


def _draw_table(weight: Tensor, stack: object, generator: torch.Generator) -> None:
    """Draw a table with the method of its encoder or decoder, or else with the default method."""
    if isinstance(stack, Initialized):
        stack.initialize_table(weight, generator)
    else:
        table(weight, generator)
