"""Convolutional encoders and decoders from settings."""

from typing import Any

from heedful.config.convs2s import attending_layers, layers_of
from heedful.config.model import ModelConfig
from heedful.model.convolutional.bytenet import ByteNetDecoder, ByteNetEncoder
from heedful.model.convolutional.bytenet_blocks import (
    ByteNetSizes,
    Unfolding,
    repeated_dilations,
)
from heedful.model.convolutional.convs2s import (
    ConvS2SDecoder,
    ConvS2SEncoder,
    ConvS2SWiring,
    LayerShape,
)
from heedful.model.memory import SourceEncoder


def convs2s_encoder(config: ModelConfig) -> ConvS2SEncoder:
    """Build a ConvS2S encoder."""
    # section 3.5: by the number of attention mechanisms, which all send gradients; and by 2 in
    # fairseq. Other decoders have no such attention in every layer.
    scale = 1.0
    if config.decoder == "convs2s":
        scale = 1.0 / (2.0 * config.cross_attention[0])
    return ConvS2SEncoder(_wiring(config, "encoder", gradient_scale=scale))


def convs2s_decoder(config: ModelConfig) -> ConvS2SDecoder:
    """Build a ConvS2S decoder behind an encoder of any family."""
    layers = len(layers_of(config.convs2s.decoder_layers))
    chosen = attending_layers(config.convs2s.attention, layers)
    return ConvS2SDecoder(
        _wiring(
            config,
            "decoder",
            attending=tuple(number in chosen for number in range(1, layers + 1)),
            out_embed_dim=config.convs2s.out_embed_dim or config.d_model,
        )
    )


def _wiring(config: ModelConfig, side: str, **choices: Any) -> ConvS2SWiring:
    """Collect the sizes and choices of one side."""
    return ConvS2SWiring(
        d_model=config.d_model,
        layers=tuple(
            LayerShape(*layer) for layer in layers_of(getattr(config.convs2s, f"{side}_layers"))
        ),
        dropout=config.dropout,
        weight_norm=config.convs2s.weight_norm,
        **choices,
    )


def bytenet_encoder(config: ModelConfig) -> ByteNetEncoder:
    """Build ByteNet's encoder; it makes room for the target of its own decoder alone."""
    unfolding = _unfolding(config, config.d_model) if config.decoder == "bytenet" else None
    return ByteNetEncoder(_sizes(config, "encoder"), unfolding)


def bytenet_decoder(config: ModelConfig, encoder: SourceEncoder) -> ByteNetDecoder:
    """Build ByteNet's decoder behind an encoder of any family."""
    unfolding = None if config.encoder == "bytenet" else _unfolding(config, encoder.width)
    concatenated = config.bytenet.join == "concatenated"
    return ByteNetDecoder(_sizes(config, "decoder"), encoder.width, concatenated, unfolding)


def _unfolding(config: ModelConfig, width: int) -> Unfolding:
    """Build the room for the target."""
    bytenet = config.bytenet
    learned = bytenet.unfolding_padding == "learned"
    return Unfolding(width, bytenet.unfolding_factor, bytenet.unfolding_offset, learned)


def _sizes(config: ModelConfig, side: str) -> ByteNetSizes:
    """Collect the sizes of a stack of blocks."""
    bytenet, blocks = config.bytenet, getattr(config, f"{side}_layers")
    return ByteNetSizes(
        width=config.d_model,
        channels=bytenet.channels or config.d_model // 2,
        kernel=getattr(bytenet, f"{side}_kernel"),
        dilations=repeated_dilations(blocks, bytenet.max_dilation),
        dropout=config.dropout,
        columns=bytenet.unfolding_factor if config.decoder == "bytenet" else 1.0,
    )
