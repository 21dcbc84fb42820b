"""Mixtures of experts from settings."""

from heedful.families.experts.config import ExpertsConfig, layers_with_mixtures
from heedful.model.experts.mixture import NO_MIXTURES, MixtureConfig, Mixtures
from heedful.settings.model import ModelSettings


def build_part(settings: ModelSettings, side: str) -> Mixtures:
    """Collect the sizes of the mixtures of an encoder or decoder, and the layers that have them."""
    experts, layers = settings.part(ExpertsConfig), layers_with_mixtures(settings, side)
    if experts.count is None or not layers:
        return NO_MIXTURES
    own, activation = 4 * settings.d_model, "relu"
    if getattr(settings, side) == "transformer":
        own, activation = getattr(settings, f"{side}_d_ff") or settings.d_ff, settings.activation
    sizes = MixtureConfig(
        d_model=settings.d_model,
        d_ff=experts.d_ff or own,
        experts=experts.count,
        per_token=experts.per_token,
        gating=experts.gating,
        groups=experts.groups,
        activation=activation,
        sigmoid=experts.sigmoid,
        importance_loss=experts.importance_loss,
        load_loss=experts.load_loss,
    )
    return Mixtures(sizes, layers)
