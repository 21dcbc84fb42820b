"""Mixtures of experts from settings."""

from dataclasses import replace
from functools import partial

from heedful.families.experts.config import ExpertsConfig, layers_with_mixtures
from heedful.families.experts.mixture import MixtureConfig, MixtureOfExperts
from heedful.model.parts import NO_NETWORKS, Networks
from heedful.settings.model import ModelSettings


def build_networks(settings: ModelSettings, side: str) -> Networks:
    """Return the builder of an encoder's or decoder's mixtures, and the layers that have them."""
    experts, layers = settings.part(ExpertsConfig), layers_with_mixtures(settings, side)
    if experts.count is None or not layers:
        return NO_NETWORKS
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
    return Networks(partial(_mixture, sizes), layers)


def _mixture(sizes: MixtureConfig, width: int) -> MixtureOfExperts:
    """Build a mixture for states of this width."""
    return MixtureOfExperts(replace(sizes, d_model=width))
