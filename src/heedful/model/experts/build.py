"""Mixtures of experts from settings."""

from heedful.config.experts import mixture_layers
from heedful.config.model import ModelConfig
from heedful.model.experts.mixture import MixtureConfig


def mixture_config(config: ModelConfig, side: str) -> MixtureConfig | None:
    """Collect the sizes of the mixtures of an encoder or decoder; None if it has none."""
    experts = config.experts
    if experts.count is None or not layers_with_mixtures(config, side):
        return None
    is_transformer = getattr(config, side) == "transformer"
    own = getattr(config, f"{side}_d_ff") or config.d_ff if is_transformer else 4 * config.d_model
    return MixtureConfig(
        d_model=config.d_model,
        d_ff=experts.d_ff or own,
        experts=experts.count,
        per_token=experts.per_token,
        gating=experts.gating,
        groups=experts.groups,
        activation=config.activation if is_transformer else "relu",
        sigmoid=experts.sigmoid,
        importance_loss=experts.importance_loss,
        load_loss=experts.load_loss,
    )


def layers_with_mixtures(config: ModelConfig, side: str) -> tuple[int, ...]:
    """List the layers of an encoder or decoder that have a mixture, from 1."""
    if config.experts.count is None:
        return ()
    layers = getattr(config.experts, f"{side}_layers")
    return mixture_layers(layers, getattr(config, f"{side}_layers"))
