"""Incompatible settings of mixtures of experts."""

from collections.abc import Iterator

from heedful.families.experts.config import ExpertsConfig, layers_with_mixtures, mixture_layers
from heedful.families.registry import names_with
from heedful.settings.model import ModelSettings


def experts_clashes(model: ModelSettings) -> Iterator[str]:
    """List invalid combinations of settings, each with a correction."""
    experts = model.part(ExpertsConfig)
    if experts.count is None:
        return
    yield from _numbers(model)
    total = 0
    for side in ("encoder", "decoder"):
        if getattr(model, side) not in names_with("networks"):
            continue
        layers = getattr(model, f"{side}_layers")
        text = getattr(experts, f"{side}_layers")
        chosen = mixture_layers(text, layers)
        total += len(chosen)
        if chosen and chosen[-1] > layers:
            yield (
                f"`model.experts.{side}_layers` must be layers from 1 to {layers} "
                f"(`model.{side}_layers`), but got {text}"
            )
    is_gated_somewhere = any(
        getattr(model, side) == "transformer"
        and len(layers_with_mixtures(model, side)) < getattr(model, f"{side}_layers")
        for side in ("encoder", "decoder")
    )
    if model.gated and total and not is_gated_somewhere:
        yield (
            "`model.gated` must be false if all layers have mixtures, because the networks of "
            "experts are not gated, but got true"
        )
    if not total:
        yield (
            f"`model.experts.count` must be none if no layer has a mixture, but got {experts.count}"
        )


def _numbers(model: ModelSettings) -> Iterator[str]:
    """Check that there are enough experts for each token, and that the gate can learn."""
    experts = model.part(ExpertsConfig)
    count, groups, per_token = experts.count or 0, experts.groups, experts.per_token
    if groups is not None:
        if count % groups:
            yield (
                f"`model.experts.groups` must divide `model.experts.count` ({count}), but got "
                f"{groups}"
            )
            return
        count = min(groups, count // groups)
    limit = "the number of experts"
    if groups is not None:
        limit = "the smaller of the number of groups and the number of experts in a group"
    if per_token > count:
        yield f"`model.experts.per_token` must be at most {limit} ({count}), but got {per_token}"
    if per_token == 1 and experts.gating == "noisy" and count > 1:
        yield (
            "`model.experts.per_token` must be at least 2 if `model.experts.gating` is noisy, "
            "because a single expert's gate is always 1 and learns nothing, but got 1"
        )
