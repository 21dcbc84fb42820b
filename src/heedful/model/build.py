"""
A model from settings: the only module of this package that imports the configuration.

Initial weights follow the authors' first public code (tensor2tensor 3d9c62f2) where the paper is
silent: Glorot's uniform bound on every product, taken over the shape of the product as it was fused
there, and normal numbers with standard deviation d_model^-0.5 for the embeddings.
"""

import math

import torch
from torch import Tensor, nn

from heedful.config.schema import ModelConfig
from heedful.model.attention import MultiHeadAttention
from heedful.model.embedding import LearnedPositions, SinusoidalPositions, TokenEmbedding
from heedful.model.feed_forward import FeedForward
from heedful.model.layer_config import LayerConfig
from heedful.model.layers import Decoder, DecoderLayer, Encoder
from heedful.model.output import OutputLayer, TiedOutput
from heedful.model.transformer import Positions, Transformer


def build_model(
    config: ModelConfig,
    source_vocabulary: int,
    target_vocabulary: int,
    *,
    max_length: int,
    padding: int = 0,
    start_token: int = 2,
    end_token: int = 3,
) -> Transformer:
    """
    Build a model from its settings.

    `source_vocabulary, target_vocabulary`: rows of the two tables, filling included; equal when the
    tables are tied.

    `config.decoder_start` chooses the decoder's first input: the start, end or padding symbol, or a
    zero vector (the authors' code: padding, whose embedding is zero).
    """
    zero_token = padding if config.decoder_start == "zero" else None
    first = {"symbol": start_token, "end": end_token, "pad": padding, "zero": padding}

    def embedding(vocabulary: int) -> TokenEmbedding:
        return TokenEmbedding(vocabulary, config.d_model, config.scale_embeddings, zero_token)

    embed_target = embedding(target_vocabulary)
    bias = nn.Parameter(torch.zeros(target_vocabulary)) if config.output_bias else None
    output: OutputLayer = TiedOutput(embed_target, bias)
    if config.tie_embeddings == "none":
        table = nn.Parameter(torch.zeros(target_vocabulary, config.d_model))
        output = OutputLayer(table, bias)
    return Transformer(
        embed_target if config.tie_embeddings == "all" else embedding(source_vocabulary),
        embed_target,
        _positions(config, max_length),
        _positions(config, max_length),
        Encoder(_layer_config(config, "encoder"), config.encoder_layers),
        Decoder(_layer_config(config, "decoder"), config.decoder_layers),
        output,
        dropout=config.dropout,
        padding=padding,
        start_token=first[config.decoder_start],
        end_token=end_token,
    )


def initialise(model: Transformer, seed: int) -> None:
    """
    Draw the initial weights.

    The authors' first code fuses Q, K and V of self-attention into one product, and K and V of
    cross-attention into another. Their Glorot bounds are therefore smaller than those of single
    projections: sqrt(6 / (512 + 1536)) and sqrt(6 / (512 + 1024)) in the base model. Norms keep
    torch's gains of 1 and biases of 0.
    """
    generator = torch.Generator().manual_seed(seed)
    cross = {
        layer.cross_attention for layer in model.decoder.layers if isinstance(layer, DecoderLayer)
    }
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            first = module.widths[0]
            parts = [slice(0, first), slice(first, None)] if module in cross else [slice(None)]
            for part in parts:
                _glorot(module.qkv_proj.weight[part], generator)
            _glorot(module.out_proj.weight, generator)
            for linear in (module.qkv_proj, module.out_proj):
                if linear.bias is not None:
                    nn.init.zeros_(linear.bias)
        elif isinstance(module, FeedForward):
            for linear in (module.linear1, module.linear2):
                _glorot(linear.weight, generator)
                nn.init.zeros_(linear.bias)
        elif isinstance(module, TokenEmbedding | LearnedPositions):
            _embedding(module.weight, generator)
    if model.output.weight is not model.embed_target.weight:
        _embedding(model.output.weight, generator)


def parameter_count(model: nn.Module) -> int:
    """
    Count the weights, shared ones once.

    The last column of the paper's Table 3.
    """
    return sum(parameter.numel() for parameter in model.parameters())


def padded_vocabulary(size: int, multiple: int) -> int:
    """
    Round the size of a vocabulary up to a multiple.

    `multiple`: what the number of rows must be divisible by.

    Rows beyond `size` belong to no token; search forbids them.
    """
    return -(-size // multiple) * multiple


def _layer_config(config: ModelConfig, side: str) -> LayerConfig:
    """Collect the sizes and choices shared by the layers of one stack."""
    heads = getattr(config, f"{side}_heads") or config.heads
    d_ff = getattr(config, f"{side}_d_ff") or config.d_ff
    return LayerConfig(
        d_model=config.d_model,
        d_ff=d_ff,
        heads=heads,
        d_k=config.d_k,
        d_v=config.d_v,
        activation=config.activation,
        dropout=config.dropout,
        norm=getattr(config, f"{side}_norm") or config.norm,
        norm_epsilon=config.norm_epsilon,
        projection_bias=config.projection_bias,
    )


def _positions(config: ModelConfig, rows: int) -> Positions:
    """Build the position encoding of one side."""
    if config.positions == "learned":
        return LearnedPositions(config.d_model, rows)
    return SinusoidalPositions(config.d_model, config.positions, config.position_offset)


@torch.no_grad()
def _glorot(weight: Tensor, generator: torch.Generator) -> None:
    """Draw uniformly within sqrt(6 / (fan in + fan out)) (Glorot and Bengio 2010)."""
    bound = math.sqrt(6.0 / sum(weight.shape))
    weight.uniform_(-bound, bound, generator=generator)


@torch.no_grad()
def _embedding(weight: Tensor, generator: torch.Generator) -> None:
    """Draw with standard deviation d_model^-0.5; scaling by sqrt(d_model) makes it one."""
    weight.normal_(0.0, weight.size(1) ** -0.5, generator=generator)
