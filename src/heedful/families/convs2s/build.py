"""ConvS2S encoders and decoders from settings."""

from typing import Any

from heedful.families.convs2s.config import ConvS2SConfig, attending_layers, layers_of
from heedful.families.convs2s.model import (
    ConvS2SDecoder,
    ConvS2SEncoder,
    ConvS2SWiring,
    LayerShape,
)
from heedful.model.halves import SourceEncoder
from heedful.settings.model import ModelSettings


def build_encoder(settings: ModelSettings) -> ConvS2SEncoder:
    """Build a ConvS2S encoder."""
    # Section 3.5 divides the gradient by the number of attention mechanisms, which all contribute
    # to it; fairseq also divides by 2. Other decoders do not attend in every layer.
    scale = 1.0
    if settings.decoder == "convs2s":
        scale = 1.0 / (2.0 * len(_attending(settings)))
    return ConvS2SEncoder(_wiring(settings, "encoder", gradient_scale=scale))


def build_decoder(settings: ModelSettings, encoder: SourceEncoder) -> ConvS2SDecoder:
    """Build a ConvS2S decoder for an encoder of any family."""
    del encoder
    convs2s, chosen = settings.part(ConvS2SConfig), _attending(settings)
    layers = len(layers_of(convs2s.decoder_layers))
    return ConvS2SDecoder(
        _wiring(
            settings,
            "decoder",
            attending=tuple(number in chosen for number in range(1, layers + 1)),
            out_embed_dim=convs2s.out_embed_dim or settings.d_model,
        )
    )


def _attending(settings: ModelSettings) -> list[int]:
    """List the numbers of the decoder layers that attend, counted from 1."""
    convs2s = settings.part(ConvS2SConfig)
    return attending_layers(convs2s.attention, len(layers_of(convs2s.decoder_layers)))


def _wiring(settings: ModelSettings, side: str, **choices: Any) -> ConvS2SWiring:
    """Collect the sizes and settings of one side."""
    convs2s = settings.part(ConvS2SConfig)
    layers = layers_of(getattr(convs2s, f"{side}_layers"))
    return ConvS2SWiring(
        d_model=settings.d_model,
        layers=tuple(LayerShape(*layer) for layer in layers),
        dropout=settings.dropout,
        weight_norm=convs2s.weight_norm,
        **choices,
    )
