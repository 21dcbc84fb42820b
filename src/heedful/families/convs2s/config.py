"""The settings of ConvS2S encoders and decoders."""

import re
from typing import Annotated, ClassVar, NamedTuple

from pydantic import AfterValidator, BeforeValidator

from heedful.settings.conditions import ActsIf
from heedful.settings.field_types import MOST_LAYERS, Width, number_as_text, written_as
from heedful.settings.table import SettingsTable

ENCODER = ActsIf("model.encoder", ("convs2s",))
DECODER = ActsIf("model.decoder", ("convs2s",))

_COUNT = r"[1-9][0-9]{0,5}"
_PART = rf"(?:([1-9][0-9]{{0,99}})x)?\(({_COUNT}),({_COUNT})(?:,([0-9]{{1,3}}))?\)"


def _check_depth(text: str) -> str:
    """Refuse more than `MOST_LAYERS` layers before they are listed."""
    count = sum(int(times or 1) for times, *_ in re.findall(_PART, text))
    if count > MOST_LAYERS:
        raise ValueError(f"must have at most {MOST_LAYERS} layers")
    return text


ConvolutionalLayers = Annotated[
    str,
    written_as(
        rf"{_PART}(?: {_PART})*",
        "must be groups of layers such as 9x(512,3), separated by spaces: a number of layers, "
        "their channels and their kernel width, all below a million",
    ),
    AfterValidator(_check_depth),
]
Attending = Annotated[
    str,
    BeforeValidator(number_as_text),
    written_as(
        rf"all|first|last|{_COUNT}(?: {_COUNT})*",
        "must be all, first, last, or layer numbers from 1, separated by spaces",
    ),
]


class LayerText(NamedTuple):
    """One layer as the settings describe it."""

    channels: int
    kernel: int
    residual: int


def layers_of(text: str) -> list[LayerText]:
    """Read the shapes of all layers from text such as ``9x(512,3) 4x(1024,3)``."""
    layers = []
    for count, channels, kernel, residual in re.findall(_PART, text):
        shape = LayerText(int(channels), int(kernel), int(residual or 1))
        layers += [shape] * int(count or 1)
    return layers


def attending_layers(text: str, layers: int) -> list[int]:
    """List the numbers of the layers that attend, counted from 1."""
    named = {"all": range(1, layers + 1), "first": [1], "last": [layers]}
    return list(named[text]) if text in named else sorted(map(int, set(text.split())))


class ConvS2SConfig(SettingsTable):
    """Convolutional encoders and decoders of Gehring et al. (2017)."""

    table: ClassVar[str] = "model.convs2s"

    encoder_layers: Annotated[ConvolutionalLayers, ENCODER] = "20x(512,3)"
    """Layers as COUNTx(CHANNELS,KERNEL) or COUNTx(CHANNELS,KERNEL,N); a residual spans N layers."""
    decoder_layers: Annotated[ConvolutionalLayers, DECODER] = "20x(512,3)"
    """Channels and kernel widths of the decoder layers, written as in encoder_layers."""
    attention: Annotated[Attending, DECODER] = "all"
    """Decoder layers that attend to the source: all, first, last or their numbers from 1."""
    out_embed_dim: Annotated[Width | None, DECODER] = None
    """Width of the input of the output matrix. None means d_model."""
    weight_norm: bool = True
    """Whether weights are g v / |v| with trained v and g (Salimans and Kingma 2016)."""
