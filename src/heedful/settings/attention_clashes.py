"""Settings of attention inside a Transformer that do not go together."""

from collections.abc import Iterator

from heedful.settings.model import ModelSettings


def attention_clashes(model: ModelSettings) -> Iterator[str]:
    """List what does not fit, each with what to change."""
    attention = model.attention
    if attention.encoder == "convolution" and attention.window is None:
        yield (
            "`model.attention.window` must be the width of the convolution if "
            "`model.attention.encoder` is convolution, but none came"
        )
    for side in ("encoder", "decoder"):
        kind, heads = getattr(attention, side), getattr(model, f"{side}_heads") or model.heads
        if "fastformer" in kind and model.d_k not in (None, model.d_model // heads):
            yield (
                f"`model.d_k` must be none if `model.attention.{side}` is {kind}, whose heads "
                f"share `model.d_model`, but {model.d_k} came"
            )
        if "fastformer" in kind and model.d_model % heads:
            yield (
                f"the heads of the {side} must divide `model.d_model` ({model.d_model}) if "
                f"`model.attention.{side}` is {kind}, but they are {heads}"
            )
    if attention.decoder == "fastformer-linear" and not model.causal_mask:
        yield (
            "`model.causal_mask` must be true if `model.attention.decoder` is fastformer-linear, "
            "which never reads what follows, but false came"
        )
    elif attention.window is not None and not model.causal_mask:
        yield (
            "`model.attention.window` hides from a decoder what follows, so `model.causal_mask` "
            "must be true with it, but false came"
        )
