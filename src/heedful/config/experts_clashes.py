"""Settings of mixtures of experts that do not go together."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from heedful.config.experts import mixture_layers

if TYPE_CHECKING:
    from heedful.config.model import ModelConfig

_FAMILIES = ("transformer", "recurrent")


def experts_clashes(model: "ModelConfig") -> Iterator[str]:
    """List what does not fit, each with what to change."""
    experts = model.experts
    if experts.count is None:
        return
    yield from _numbers(model)
    total = 0
    for side in ("encoder", "decoder"):
        if getattr(model, side) not in _FAMILIES:
            continue
        layers = getattr(model, f"{side}_layers")
        text = getattr(experts, f"{side}_layers")
        chosen = mixture_layers(text, layers)
        total += len(chosen)
        if chosen and chosen[-1] > layers:
            yield (
                f"`model.experts.{side}_layers` must be layers from 1 to {layers} "
                f"(`model.{side}_layers`), but {text} came"
            )
        if chosen and getattr(model, side) == "recurrent":
            yield from _recurrent(model, side, chosen)
    if not total:
        yield (
            "`model.experts.count` must be none if no layer has a mixture, but "
            f"{experts.count} came"
        )


def _numbers(model: "ModelConfig") -> Iterator[str]:
    """Check that there are as many experts as a token takes, and a gate to learn."""
    experts = model.experts
    count, groups, per_token = experts.count or 0, experts.groups, experts.per_token
    if groups is not None:
        if count % groups:
            yield (
                f"`model.experts.groups` must divide `model.experts.count` ({count}), but "
                f"{groups} came"
            )
            return
        count = min(groups, count // groups)
    where = "" if groups is None else " of groups and of experts in a group"
    if per_token > count:
        yield (
            f"`model.experts.per_token` must be at most the number{where or ' of experts'} "
            f"({count}), but {per_token} came"
        )
    if per_token == 1 and experts.gating == "noisy" and count > 1:
        yield (
            "`model.experts.per_token` must be 2 or more, because the weight of a single expert "
            "is always 1 and its gate would learn nothing of the loss, but 1 came"
        )


def _recurrent(model: "ModelConfig", side: str, chosen: tuple[int, ...]) -> Iterator[str]:
    """Check that a recurrent side has room for mixtures: outside of what is fed back."""
    recurrent = model.recurrent
    if recurrent.fast_forward:
        yield (
            "`model.recurrent.fast_forward` must be false with mixtures of experts, which are not "
            "linear, but true came"
        )
    if side == "encoder":
        if recurrent.direction == "interleaved":
            yield (
                "`model.recurrent.direction` must not be interleaved with mixtures of experts in "
                "the encoder, which has two columns of layers then; choose another one"
            )
        return
    alone = recurrent.feed == "none" and recurrent.query == "current"
    below = (
        recurrent.query == "previous"
        and recurrent.feed == "context"
        and recurrent.feed_layers == "first"
    )
    if recurrent.score != "none" and not (alone or below):
        yield (
            "mixtures of experts in a recurrent decoder need layers that nothing is fed back to: "
            "set `model.recurrent.query` to previous, `model.recurrent.feed` to context and "
            "`model.recurrent.feed_layers` to first, or `model.experts.decoder_layers` to none"
        )
