"""A Transformer from settings; `heedful.families.build` makes a whole model of any families."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import nn

from heedful.model.contracts import SourceEncoder
from heedful.model.embedding import (
    LearnedPositions,
    NoPositions,
    OutputLayer,
    SinusoidalPositions,
    TiedOutput,
    TokenEmbedding,
)
from heedful.model.encoder_decoder import Positions
from heedful.model.layer_config import LayerConfig
from heedful.model.layers import Decoder, Encoder
from heedful.model.parts import NO_NETWORKS, Mixer, Networks
from heedful.model.residual import NormFactory
from heedful.settings.model import ModelSettings


class LayerParts(NamedTuple):
    """What other families put into the layers of an encoder or decoder."""

    networks: Networks = NO_NETWORKS
    """Networks of some layers."""
    mixer: Callable[[LayerConfig], Mixer] | None = None
    """Builds what takes the place of self-attention in all layers."""
    norm: NormFactory | None = None
    """Builds what takes the place of layer norm."""


NO_PARTS = LayerParts()


def build_encoder(settings: ModelSettings, parts: LayerParts = NO_PARTS) -> Encoder:
    """Build a Transformer's encoder."""
    return Encoder(_layer_config(settings, "encoder", parts), settings.encoder_layers)


def build_decoder(
    settings: ModelSettings, encoder: SourceEncoder, parts: LayerParts = NO_PARTS
) -> Decoder:
    """Build a Transformer's decoder behind an encoder of any family."""
    del encoder
    return Decoder(_layer_config(settings, "decoder", parts), settings.decoder_layers)


def padded_vocabulary(size: int, multiple: int) -> int:
    """
    Round the size of a vocabulary up to a multiple.

    `multiple`: what the number of rows must be divisible by.

    Rows beyond `size` belong to no token; search forbids them.
    """
    return -(-size // multiple) * multiple


def _layer_config(settings: ModelSettings, side: str, parts: LayerParts) -> LayerConfig:
    """Collect the sizes and choices shared by the layers of one stack."""
    heads = getattr(settings, f"{side}_heads") or settings.heads
    d_ff = getattr(settings, f"{side}_d_ff") or settings.d_ff
    return LayerConfig(
        d_model=settings.d_model,
        d_ff=d_ff,
        heads=heads,
        d_k=settings.d_k,
        d_v=settings.d_v,
        activation=settings.activation,
        dropout=settings.dropout,
        norm=getattr(settings, f"{side}_norm") or settings.norm,
        norm_epsilon=settings.norm_epsilon,
        norm_kind=parts.norm or ("none" if settings.norm_kind == "none" else "layer"),
        residuals=settings.residuals,
        causal_mask=settings.causal_mask,
        projection_bias=settings.projection_bias,
        score=settings.attention.score,
        mixer=parts.mixer,
        window=settings.attention.window,
        networks=parts.networks,
    )


def build_positions(layout: str, d_model: int, rows: int, offset: int = 0) -> Positions:
    """Build the position encoding of one side; learned ones have `rows`."""
    if layout == "learned":
        return LearnedPositions(d_model, rows)
    if layout == "none":
        return NoPositions(d_model)
    return SinusoidalPositions(d_model, layout, offset)


def build_output(
    embed_target: TokenEmbedding, width: int, *, is_tied: bool, has_bias: bool
) -> OutputLayer:
    """Build the output layer; an untied matrix has the width of the decoder's states."""
    rows = embed_target.weight.size(0)
    bias = nn.Parameter(torch.zeros(rows)) if has_bias else None
    if is_tied:
        return TiedOutput(embed_target, bias)
    return OutputLayer(nn.Parameter(torch.zeros(rows, width)), bias)
