"""Recurrent encoders and decoders from settings."""

from typing import Any

from heedful.families.recurrent.config import RecurrentConfig
from heedful.families.recurrent.decoder import RecurrentDecoder
from heedful.families.recurrent.encoder import RecurrentEncoder
from heedful.families.recurrent.wiring import RecurrentWiring
from heedful.model.halves import SourceEncoder
from heedful.model.layer_config import NO_PARTS, LayerParts
from heedful.settings.model import ModelSettings


def build_encoder(settings: ModelSettings, parts: LayerParts = NO_PARTS) -> RecurrentEncoder:
    """Build a recurrent encoder."""
    recurrent = settings.part(RecurrentConfig)
    return RecurrentEncoder(
        _wiring(
            settings,
            parts,
            "encoder",
            direction=recurrent.direction,
            reverse_source=recurrent.reverse_source,
        )
    )


def build_decoder(
    settings: ModelSettings, encoder: SourceEncoder, parts: LayerParts = NO_PARTS
) -> RecurrentDecoder:
    """Build a recurrent decoder for an encoder of any family."""
    recurrent = settings.part(RecurrentConfig)
    size = (
        recurrent.projection_size
        or recurrent.decoder_hidden_size
        or recurrent.hidden_size
        or settings.d_model
    )
    wiring = _wiring(
        settings,
        parts,
        "decoder",
        memory_width=encoder.width,
        final_width=_final_width(settings, encoder),
        score=recurrent.score,
        attention_size=recurrent.attention_size or size,
        query=recurrent.query,
        feed=recurrent.feed,
        feed_layers=recurrent.feed_layers,
        readout=recurrent.readout,
        readout_size=recurrent.readout_size or size,
        readout_dropout=_or(recurrent.readout_dropout, settings.dropout),
        start=recurrent.start,
    )
    return RecurrentDecoder(wiring)


def _final_width(settings: ModelSettings, encoder: SourceEncoder) -> int:
    """Return the width of the vector from which the first state is computed."""
    if settings.part(RecurrentConfig).start == "mean":
        return encoder.width
    if not isinstance(encoder, RecurrentEncoder):
        return 0
    wiring = encoder.wiring
    if settings.part(RecurrentConfig).start == "backward" or not wiring.top_is_bidirectional:
        return wiring.state_width
    return 2 * wiring.state_width


def _wiring(
    settings: ModelSettings, parts: LayerParts, side: str, **choices: Any
) -> RecurrentWiring:
    """Collect the sizes and settings of a recurrent encoder or decoder."""
    recurrent = settings.part(RecurrentConfig)
    return RecurrentWiring(
        d_model=settings.d_model,
        hidden_size=getattr(recurrent, f"{side}_hidden_size")
        or recurrent.hidden_size
        or settings.d_model,
        layers=getattr(settings, f"{side}_layers"),
        cell=recurrent.cell,
        projection_size=recurrent.projection_size,
        residual_from=recurrent.residual_from,
        networks=parts.networks,
        fast_forward=recurrent.fast_forward,
        embedding_dropout=_or(recurrent.embedding_dropout, settings.dropout),
        layer_dropout=_or(recurrent.layer_dropout, settings.dropout),
        initialisation=recurrent.initialisation,
        initial_range=recurrent.initial_range,
        forget_bias=recurrent.forget_bias,
        **choices,
    )


def _or(value: float | None, otherwise: float) -> float:
    """Return the value, or a default if the value is None; zero is not replaced."""
    return otherwise if value is None else value
