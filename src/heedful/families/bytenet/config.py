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
    """Width inside a block, d of the paper. None means half of d_model, the 2d of the paper."""
    encoder_kernel: Annotated[Width, ENCODER] = 3
    """Positions that a convolution of the encoder reads, as many before as after."""
    decoder_kernel: Annotated[Width, DECODER] = 3
    """Positions that a convolution of the decoder reads."""
    max_dilation: Annotated[int, Field(ge=1, le=1024)] = 16
    """Largest distance of these positions; distances double from 1 block by block, then repeat."""
    join: Annotated[Literal["concatenated", "summed"], DECODER] = "concatenated"
    """How an encoder column and an embedding are joined: concatenated and mapped, or summed."""
    unfolding_factor: Annotated[float, Field(ge=1, le=10), DECODER] = 1.2
    """Columns for each source subword, a of the paper; after the last one there are zeros."""
    unfolding_offset: Annotated[int, Field(ge=0, le=10_000), DECODER] = 0
    """Columns added to these, b of the paper."""
    unfolding_padding: Annotated[Literal["learned", "zero"], DECODER] = "learned"
    """Initial value of columns beyond the source: a learned vector, or zeros."""
