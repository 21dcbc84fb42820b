"""Convolutions in the place of self-attention, from settings."""

import pytest

from heedful.config.load import load_config
from heedful.errors import SettingError
from heedful.families.relative_maps.build import build_mixer
from heedful.model.layer_config import LayerConfig
from heedful.model.layers import Decoder, Encoder

SIZES = {"d_model": 8, "d_ff": 8, "heads": 2}


def mixer(config):
    return build_mixer("encoder", config)


def test_the_width_is_that_of_the_window():
    assert mixer(LayerConfig(**SIZES, window=4)).convolution.kernel == 5
    assert mixer(LayerConfig(**SIZES, window=1)).convolution.kernel == 1
    with pytest.raises(SettingError, match="`window` must be the width of the convolution"):
        mixer(LayerConfig(**SIZES))
    with pytest.raises(SettingError, match=r"`model.attention.window` must be the width"):
        load_config("tiny", ["model.attention.encoder=convolution"])


def test_a_decoder_cannot_have_it():
    Encoder(LayerConfig(**SIZES, mixer=mixer, window=3), 1)
    with pytest.raises(SettingError, match="of DecoderLayer must be a TargetMixer"):
        Decoder(LayerConfig(**SIZES, mixer=mixer, window=3), 1)


def test_it_has_no_heads():
    chosen = ["model.attention.encoder=convolution", "model.attention.window=3"]
    with pytest.raises(SettingError, match=r"`model.encoder_heads` applies only"):
        load_config("tiny", [*chosen, "model.encoder_heads=4"])


@pytest.mark.family("bytenet")
@pytest.mark.parametrize("setting", ["heads=4", "d_k=4", "d_v=4", "projection_bias=false"])
def test_a_convolution_before_another_decoder_has_no_heads(setting):
    chosen = ["model.decoder=bytenet", "model.attention.encoder=convolution"]
    # no heads, so nothing has to divide the width
    chosen += ["model.attention.window=3", "model.d_model=22"]
    load_config("tiny", chosen)
    with pytest.raises(SettingError, match=f"`model.{setting.partition('=')[0]}` applies only if"):
        load_config("tiny", [*chosen, f"model.{setting}"])
