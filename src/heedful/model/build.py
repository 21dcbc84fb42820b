"""A model from settings: the only module of this package that imports the configuration."""

from typing import Any

import torch
from torch import nn

from heedful.config.schema import ModelConfig
from heedful.model.embedding import LearnedPositions, SinusoidalPositions, TokenEmbedding
from heedful.model.encoder_decoder import EncoderDecoder, Positions
from heedful.model.layer_config import LayerConfig
from heedful.model.layers import Decoder, Encoder
from heedful.model.memory import SourceEncoder, TargetDecoder
from heedful.model.output import OutputLayer, TiedOutput
from heedful.model.recurrent.decoder import RecurrentDecoder
from heedful.model.recurrent.encoder import RecurrentEncoder
from heedful.model.recurrent.wiring import RecurrentWiring
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

    encoder, source_positions, memory = _encoder(config, max_length)
    decoder, target_positions, width = _decoder(config, max_length, memory)
    shared = config.tie_embeddings == "all"
    readers = (config.encoder, config.decoder) if shared else (config.decoder,)
    embed_target = embedding(target_vocabulary, *readers)
    bias = nn.Parameter(torch.zeros(target_vocabulary)) if config.output_bias else None
    output: OutputLayer = TiedOutput(embed_target, bias)
    if config.tie_embeddings == "none":
        output = OutputLayer(nn.Parameter(torch.zeros(target_vocabulary, width)), bias)
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


def _encoder(
    config: ModelConfig, max_length: int
) -> tuple[SourceEncoder, Positions | None, tuple[int, int]]:
    """Build the encoder, its positions, and the widths of its states and of its last states."""
    if config.encoder == "transformer":
        encoder = Encoder(_layer_config(config, "encoder"), config.encoder_layers)
        return encoder, _positions(config, max_length), (config.d_model, 0)
    wiring = _wiring(config, "encoder")
    final = wiring.hidden_size if wiring.direction == "forward" else 2 * wiring.hidden_size
    if wiring.direction == "first-bidirectional" and wiring.layers > 1:
        final = wiring.hidden_size
    return RecurrentEncoder(wiring), None, (wiring.output_width, final)


def _decoder(
    config: ModelConfig, max_length: int, memory: tuple[int, int]
) -> tuple[TargetDecoder, Positions | None, int]:
    """Build the decoder, its positions, and the width of what meets the output matrix."""
    if config.decoder == "transformer":
        decoder = Decoder(_layer_config(config, "decoder"), config.decoder_layers)
        return decoder, _positions(config, max_length), config.d_model
    recurrent = config.recurrent
    width, final = memory
    size = recurrent.decoder_hidden_size or recurrent.hidden_size or config.d_model
    wiring = _wiring(
        config,
        "decoder",
        memory_width=width,
        final_width={"mean": width, "backward": final // 2}.get(recurrent.start, final),
        score=recurrent.score,
        attention_size=recurrent.attention_size or size,
        query=recurrent.query,
        feed=recurrent.feed,
        feed_layers=recurrent.feed_layers,
        readout=recurrent.readout,
        readout_size=recurrent.readout_size or size,
        readout_dropout=_or(recurrent.readout_dropout, config.dropout),
        start=recurrent.start,
    )
    return RecurrentDecoder(wiring), None, wiring.readout_width


def _wiring(config: ModelConfig, side: str, **choices: Any) -> RecurrentWiring:
    """Collect the sizes and choices of a recurrent encoder or decoder."""
    recurrent = config.recurrent
    if side == "encoder":
        choices = {"direction": recurrent.direction, "reverse_source": recurrent.reverse_source}
    return RecurrentWiring(
        d_model=config.d_model,
        hidden_size=getattr(recurrent, f"{side}_hidden_size")
        or recurrent.hidden_size
        or config.d_model,
        layers=getattr(config, f"{side}_layers"),
        cell=recurrent.cell,
        residual_from=recurrent.residual_from,
        fast_forward=recurrent.fast_forward,
        embedding_dropout=_or(recurrent.embedding_dropout, config.dropout),
        layer_dropout=_or(recurrent.layer_dropout, config.dropout),
        initialisation=recurrent.initialisation,
        initial_range=recurrent.initial_range,
        forget_bias=recurrent.forget_bias,
        **choices,
    )


def _or(value: float | None, otherwise: float) -> float:
    """Return the value, or another where it is None; zero is a value."""
    return otherwise if value is None else value


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
