"""A model from settings. Families beside the Transformer have a `build.py` of their own."""

import torch
from torch import nn

from heedful.config.model import ModelConfig
from heedful.model.convolutional.build import (
    bytenet_decoder,
    bytenet_encoder,
    convs2s_decoder,
    convs2s_encoder,
)
from heedful.model.embedding import (
    LearnedPositions,
    NoPositions,
    SinusoidalPositions,
    TokenEmbedding,
)
from heedful.model.encoder_decoder import EncoderDecoder, Positions
from heedful.model.experts.build import layers_with_mixtures, mixture_config
from heedful.model.layer_config import LayerConfig
from heedful.model.layers import Decoder, Encoder
from heedful.model.memory import SourceEncoder, TargetDecoder
from heedful.model.output import OutputLayer, TiedOutput
from heedful.model.pooled import PooledEncoder
from heedful.model.recurrent.build import recurrent_decoder, recurrent_encoder
from heedful.model.transformer import Transformer


def build_model(
    config: ModelConfig,
    source_vocabulary: int,
    target_vocabulary: int,
    *,
    max_length: int,
    padding: int = 0,
    start_token: int = 2,
    end_token: int = 3,
) -> EncoderDecoder:
    """
    Build a model from its settings.

    `source_vocabulary, target_vocabulary`: rows of the two tables, filling included; equal when the
    tables are tied.

    `config.decoder_start` chooses the decoder's first input: the start, end or padding symbol, or a
    zero vector (the authors' code: padding, whose embedding is zero).
    """
    zero_token = padding if config.decoder_start == "zero" else None
    first = {"symbol": start_token, "end": end_token, "pad": padding, "zero": padding}

    def embedding(vocabulary: int, *families: str) -> TokenEmbedding:
        scale = config.scale_embeddings and "transformer" in families
        return TokenEmbedding(vocabulary, config.d_model, scale, zero_token)

    encoder, source_positions = _encoder(config, max_length)
    decoder, target_positions = _decoder(config, max_length, encoder)
    shared = config.tie_embeddings == "all"
    readers = (config.encoder, config.decoder) if shared else (config.decoder,)
    embed_target = embedding(target_vocabulary, *readers)
    bias = nn.Parameter(torch.zeros(target_vocabulary)) if config.output_bias else None
    output: OutputLayer = TiedOutput(embed_target, bias)
    if config.tie_embeddings == "none":
        output = OutputLayer(nn.Parameter(torch.zeros(target_vocabulary, decoder.width)), bias)
    is_transformer = config.encoder == config.decoder == "transformer"
    return (Transformer if is_transformer else EncoderDecoder)(
        embed_target if shared else embedding(source_vocabulary, config.encoder),
        embed_target,
        source_positions,
        target_positions,
        encoder,
        decoder,
        output,
        dropout=config.dropout,
        padding=padding,
        start_token=first[config.decoder_start],
        end_token=end_token,
    )


def _encoder(config: ModelConfig, max_length: int) -> tuple[SourceEncoder, Positions | None]:
    """Build the encoder and its positions."""
    if config.encoder == "recurrent":
        return recurrent_encoder(config), None
    if config.encoder == "convs2s":
        return convs2s_encoder(config), _positions(config, max_length)
    if config.encoder in ("average", "sum"):
        return PooledEncoder(config.d_model, config.encoder, config.dropout), None
    if config.encoder == "bytenet":
        return bytenet_encoder(config), None
    layers = Encoder(_layer_config(config, "encoder"), config.encoder_layers)
    return layers, _positions(config, max_length)


def _decoder(
    config: ModelConfig, max_length: int, encoder: SourceEncoder
) -> tuple[TargetDecoder, Positions | None]:
    """Build the decoder and its positions."""
    if config.decoder == "recurrent":
        return recurrent_decoder(config, encoder), None
    if config.decoder == "convs2s":
        return convs2s_decoder(config), _positions(config, max_length)
    if config.decoder == "bytenet":
        return bytenet_decoder(config, encoder), None
    layers = Decoder(_layer_config(config, "decoder"), config.decoder_layers)
    return layers, _positions(config, max_length)


def parameter_count(model: nn.Module) -> int:
    """Count the weights, shared ones once: the last column of the paper's Table 3."""
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
        norm_kind=config.norm_kind,
        residuals=config.residuals,
        causal_mask=config.causal_mask,
        projection_bias=config.projection_bias,
        score=config.attention.score,
        mixer=getattr(config.attention, side),
        window=config.attention.window,
        mixture=mixture_config(config, side),
        mixture_layers=layers_with_mixtures(config, side),
    )


def _positions(config: ModelConfig, rows: int) -> Positions:
    """Build the position encoding of one side."""
    if config.positions == "learned":
        return LearnedPositions(config.d_model, rows)
    if config.positions == "none":
        return NoPositions(config.d_model)
    return SinusoidalPositions(config.d_model, config.positions, config.position_offset)
