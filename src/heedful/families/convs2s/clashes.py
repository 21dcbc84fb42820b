"""Incompatible settings of ConvS2S models."""

from collections.abc import Iterator

from heedful.families.convs2s.config import ConvS2SConfig, attending_layers, layers_of
from heedful.settings.model import ModelSettings


def convs2s_clashes(model: ModelSettings, memory: int) -> list[str]:
    """List invalid settings, each with a correction. `memory`: width of the encoder's states."""
    clashes: list[str] = []
    for side in ("encoder", "decoder"):
        if getattr(model, side) == "convs2s":
            clashes += _layers(model, side)
    if model.decoder == "convs2s":
        clashes += _decoder(model, memory)
    return clashes


def _layers(model: ModelSettings, side: str) -> Iterator[str]:
    """Check the shapes of the layers of one side."""
    layers = layers_of(getattr(model.part(ConvS2SConfig), f"{side}_layers"))
    for number, layer in enumerate(layers, start=1):
        if layer.residual > number:
            yield (
                f"`model.convs2s.{side}_layers`: the third number of layer {number} must be at "
                f"most {number}, because it counts layers back from this layer, but is "
                f"{layer.residual}"
            )


def _decoder(model: ModelSettings, memory: int) -> Iterator[str]:
    """Check the attending layers and the widths of the encoder's states and of the readout."""
    convs2s = model.part(ConvS2SConfig)
    layers = len(layers_of(convs2s.decoder_layers))
    if (highest := attending_layers(convs2s.attention, layers)[-1]) > layers:
        yield (
            f"`model.convs2s.attention` must name layers of the decoder, which has {layers}, but "
            f"got {highest}"
        )
    if memory != model.d_model:
        yield (
            f"`model.decoder` = convs2s needs states of the encoder as wide as `model.d_model` "
            f"({model.d_model}), but they are {memory} wide; for a bidirectional encoder, set "
            f"`model.recurrent.encoder_hidden_size` to half of `model.d_model`"
        )
    width = convs2s.out_embed_dim or model.d_model
    if model.tie_embeddings in ("all", "output") and width != model.d_model:
        yield (
            f"`model.tie_embeddings` = {model.tie_embeddings} needs `model.convs2s.out_embed_dim` "
            f"to be `model.d_model` ({model.d_model}), but it is {width}; leave it out, or set "
            "`model.tie_embeddings` to none"
        )
