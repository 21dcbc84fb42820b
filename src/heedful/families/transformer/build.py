"""A Transformer's halves from settings."""

from heedful.model.halves import SourceEncoder
from heedful.model.layer_config import LayerConfig
from heedful.model.layers import Decoder, Encoder
from heedful.model.parts import NO_PARTS, LayerParts
from heedful.settings.model import ModelSettings


def build_encoder(settings: ModelSettings, parts: LayerParts = NO_PARTS) -> Encoder:
    """Build a Transformer's encoder."""
    return Encoder(_layer_config(settings, "encoder", parts), settings.encoder_layers)


def build_decoder(
    settings: ModelSettings, encoder: SourceEncoder, parts: LayerParts = NO_PARTS
) -> Decoder:
    """Build a Transformer's decoder behind an encoder of any family."""
    del encoder
    return Decoder(_layer_config(settings, "decoder", parts), settings.decoder_layers)


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
