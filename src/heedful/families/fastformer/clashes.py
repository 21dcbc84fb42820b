"""Settings that are incompatible with Fastformer."""

from collections.abc import Iterator

from heedful.settings.model import ModelSettings


def fastformer_clashes(model: ModelSettings) -> Iterator[str]:
    """List invalid combinations of settings, each with a correction."""
    attention = model.attention
    for side in ("encoder", "decoder"):
        kind, heads = getattr(attention, side), getattr(model, f"{side}_heads") or model.heads
        if not kind.startswith("fastformer"):
            continue
        if model.d_k not in (None, model.d_model // heads):
            yield (
                f"`model.d_k` must be none if `model.attention.{side}` is {kind}, whose heads "
                f"share `model.d_model`, but got {model.d_k}"
            )
        if model.d_model % heads:
            yield (
                f"the number of heads in the {side} must divide `model.d_model` ({model.d_model}) "
                f"if `model.attention.{side}` is {kind}, but is {heads}"
            )
    if attention.decoder == "fastformer-linear" and not model.causal_mask:
        yield (
            "`model.causal_mask` must be true if `model.attention.decoder` is fastformer-linear, "
            "which never reads later positions, but got false"
        )
