"""ByteNet's encoders and decoders from settings."""

from heedful.families.bytenet.blocks import ByteNetSizes, Unfolding, repeated_dilations
from heedful.families.bytenet.config import ByteNetConfig
from heedful.families.bytenet.model import ByteNetDecoder, ByteNetEncoder
from heedful.model.halves import SourceEncoder
from heedful.settings.model import ModelSettings


def build_encoder(settings: ModelSettings) -> ByteNetEncoder:
    """Build ByteNet's encoder; it makes room for the target only for ByteNet's decoder."""
    unfolding = _unfolding(settings, settings.d_model) if settings.decoder == "bytenet" else None
    return ByteNetEncoder(_sizes(settings, "encoder"), unfolding)


def build_decoder(settings: ModelSettings, encoder: SourceEncoder) -> ByteNetDecoder:
    """Build ByteNet's decoder for an encoder of any family."""
    unfolding = None if settings.encoder == "bytenet" else _unfolding(settings, encoder.width)
    concatenated = settings.part(ByteNetConfig).join == "concatenated"
    return ByteNetDecoder(_sizes(settings, "decoder"), encoder.width, concatenated, unfolding)


def _unfolding(settings: ModelSettings, width: int) -> Unfolding:
    """Build the unfolding, which makes room for the target."""
    bytenet = settings.part(ByteNetConfig)
    learned = bytenet.unfolding_padding == "learned"
    return Unfolding(width, bytenet.unfolding_factor, bytenet.unfolding_offset, learned)


def _sizes(settings: ModelSettings, side: str) -> ByteNetSizes:
    """Collect the sizes of a stack of blocks."""
    bytenet, blocks = settings.part(ByteNetConfig), getattr(settings, f"{side}_layers")
    return ByteNetSizes(
        width=settings.d_model,
        channels=bytenet.channels or settings.d_model // 2,
        kernel=getattr(bytenet, f"{side}_kernel"),
        dilations=repeated_dilations(blocks, bytenet.max_dilation),
        dropout=settings.dropout,
    )
