"""ByteNet from settings."""

from heedful.config.model import ModelConfig
from heedful.families.bytenet.build import build_decoder, build_encoder
from heedful.families.bytenet.config import ByteNetConfig
from heedful.model.flops import RowLengths


def test_the_room_for_the_target_is_made_once():
    bytenet = ByteNetConfig(unfolding_factor=1.5, unfolding_padding="zero")
    config = ModelConfig(encoder="bytenet", decoder="bytenet", d_model=16, bytenet=bytenet)
    encoder = build_encoder(config)
    decoder = build_decoder(config, encoder)
    assert encoder.unfolding is not None and encoder.unfolding.padding is None
    assert decoder.unfolding is None
    columns = encoder.memory_lengths(RowLengths.padded([4, 3]))
    assert (columns.tokens.tolist(), columns.places.tolist()) == ([6, 5], [6, 6])


def test_before_a_decoder_that_attends_there_is_no_room():
    encoder = build_encoder(ModelConfig(encoder="bytenet", d_model=16, heads=2))
    lengths = RowLengths.padded([4, 3])
    assert encoder.unfolding is None and encoder.memory_lengths(lengths) is lengths


def test_sizes_are_those_of_the_settings():
    bytenet = ByteNetConfig(channels=6, encoder_kernel=5, decoder_kernel=2, max_dilation=2)
    config = ModelConfig(
        encoder="bytenet",
        decoder="bytenet",
        d_model=16,
        encoder_layers=3,
        decoder_layers=2,
        dropout=0.3,
        bytenet=bytenet,
    )
    encoder = build_encoder(config)
    sizes = encoder.sizes
    assert (sizes.width, sizes.channels, sizes.kernel) == (16, 6, 5)
    assert (sizes.dilations, sizes.dropout) == ((1, 2, 1), 0.3)
    decoder = build_decoder(config, encoder)
    assert (decoder.sizes.kernel, decoder.sizes.dilations) == (2, (1, 2))
    assert decoder.width == 16 and not decoder.attends
