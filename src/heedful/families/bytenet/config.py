"""The settings of ByteNet's encoder and decoder."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from heedful.settings.conditions import ActsIf
from heedful.settings.field_types import Width
from heedful.settings.table import SettingsTable

ENCODER = ActsIf("model.encoder", ("bytenet",))
DECODER = ActsIf("model.decoder", ("bytenet",))


class ByteNetConfig(SettingsTable):
    """ByteNet's encoder and decoder; `encoder_layers` and `decoder_layers` count their blocks."""

    table: ClassVar[str] = "model.bytenet"

    channels: Width | None = None
    """Width inside a block (ByteNet's d). None means half of d_model (ByteNet's 2d)."""
    encoder_kernel: Annotated[Width, ENCODER] = 3
    """Kernel width of the encoder's centered convolutions; it must be odd."""
    decoder_kernel: Annotated[Width, DECODER] = 3
    """Kernel width of the decoder's causal convolutions."""
    max_dilation: Annotated[int, Field(ge=1, le=1024)] = 16
    """Largest dilation; dilations double from block to block, then start again at 1."""
    join: Annotated[Literal["concatenated", "summed"], DECODER] = "concatenated"
    """How an encoder state and an embedding are joined: concatenated and projected, or summed."""
    unfolding_factor: Annotated[float, Field(ge=1, le=10), DECODER] = 1.2
    """Encoder states per source subword (ByteNet's a); after the last, the decoder reads zeros."""
    unfolding_offset: Annotated[int, Field(ge=0, le=10_000), DECODER] = 0
    """Encoder states in addition to unfolding_factor times the source length (ByteNet's b)."""
    unfolding_padding: Annotated[Literal["learned", "zero"], DECODER] = "learned"
    """Vector at the positions beyond the source: a learned vector, or zeros."""
