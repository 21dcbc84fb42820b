"""Recurrent encoders and decoders from settings."""

from typing import Any

from heedful.config.model import ModelConfig
from heedful.model.experts.build import layers_with_mixtures, mixture_config
from heedful.model.memory import SourceEncoder
from heedful.model.recurrent.decoder import RecurrentDecoder
from heedful.model.recurrent.encoder import RecurrentEncoder
from heedful.model.recurrent.wiring import RecurrentWiring


def recurrent_encoder(config: ModelConfig) -> RecurrentEncoder:
    """Build a recurrent encoder."""
    recurrent = config.recurrent
    return RecurrentEncoder(
        _wiring(
            config,
            "encoder",
            direction=recurrent.direction,
            reverse_source=recurrent.reverse_source,
        )
    )


def recurrent_decoder(config: ModelConfig, encoder: SourceEncoder) -> RecurrentDecoder:
    """Build a recurrent decoder behind an encoder of any family."""
    recurrent = config.recurrent
    size = (
        recurrent.projection_size
        or recurrent.decoder_hidden_size
        or recurrent.hidden_size
        or config.d_model
    )
    wiring = _wiring(
        config,
        "decoder",
        memory_width=encoder.width,
        final_width=_final_width(config, encoder),
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
    return RecurrentDecoder(wiring)


def _final_width(config: ModelConfig, encoder: SourceEncoder) -> int:
    """Width of what the first state is made of."""
    if config.recurrent.start == "mean":
        return encoder.width
    if not isinstance(encoder, RecurrentEncoder):
        return 0
    wiring = encoder.wiring
    if config.recurrent.start == "backward" or not wiring.top_is_bidirectional:
        return wiring.state_width
    return 2 * wiring.state_width


def _wiring(config: ModelConfig, side: str, **choices: Any) -> RecurrentWiring:
    """Collect the sizes and choices of a recurrent encoder or decoder."""
    recurrent = config.recurrent
    return RecurrentWiring(
        d_model=config.d_model,
        hidden_size=getattr(recurrent, f"{side}_hidden_size")
        or recurrent.hidden_size
        or config.d_model,
        layers=getattr(config, f"{side}_layers"),
        cell=recurrent.cell,
        projection_size=recurrent.projection_size,
        residual_from=recurrent.residual_from,
        mixture=mixture_config(config, side),
        mixture_layers=layers_with_mixtures(config, side),
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
