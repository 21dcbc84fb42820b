"""A Transformer's encoder and decoder from settings."""

from heedful.model.halves import SourceEncoder
from heedful.model.layer_config import NO_PARTS, LayerConfig, LayerParts
from heedful.model.layers import Decoder, Encoder
from heedful.settings.model import ModelSettings


def build_encoder(settings: ModelSettings, parts: LayerParts = NO_PARTS) -> Encoder:
    """Build a Transformer's encoder."""
    config = _layer_config(settings, "encoder", parts)
    return Encoder(config, settings.encoder_layers, settings.sharing("encoder"))


def build_decoder(
    settings: ModelSettings, encoder: SourceEncoder, parts: LayerParts = NO_PARTS
) -> Decoder:
    """Build a Transformer's decoder for an encoder of any family."""
    del encoder
    config = _layer_config(settings, "decoder", parts)
    return Decoder(config, settings.decoder_layers, settings.sharing("decoder"))


def _layer_config(settings: ModelSettings, side: str, parts: LayerParts) -> LayerConfig:
    """Collect the sizes and settings shared by the layers of one stack."""
    heads = getattr(settings, f"{side}_heads") or settings.heads
    d_ff = getattr(settings, f"{side}_d_ff") or settings.d_ff
    return LayerConfig(
        d_model=settings.d_model,
        d_ff=d_ff,
        heads=heads,
        kv_heads=settings.attention.kv_heads,
        d_k=settings.d_k,
        d_v=settings.d_v,
        activation=settings.activation,
        gated=settings.gated,
        feed_forward_bias=settings.feed_forward_bias,
        dropout=settings.dropout,
        attention_dropout=settings.attention.dropout,
        norm=getattr(settings, f"{side}_norm") or settings.norm,
        norm_epsilon=settings.norm_epsilon,
        norm_kind=parts.norm or ("none" if settings.norm_kind == "none" else "layer"),
        residuals=settings.residuals,
        causal_mask=settings.causal_mask,
        projection_bias=settings.projection_bias,
        score=settings.attention.score,
        qk_norm=parts.qk_norm,
        score_bias=parts.score_bias,
        rotation=parts.rotation,
        relation=parts.relation,
        scale_output=settings.scale_output,
        mixer=parts.mixer,
        window=settings.attention.window,
        networks=parts.networks,
    )
