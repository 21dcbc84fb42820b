"""Fastformer in the layers of encoders and decoders."""

import pytest

from heedful.errors import SettingError
from heedful.families.fastformer.build import build_mixer
from heedful.families.fastformer.mixer import CausalFastformer, Fastformer
from heedful.model.layer_config import LayerConfig
from heedful.model.layers import Decoder, Encoder

SIZES = {"d_model": 8, "d_ff": 8, "heads": 2}


def test_a_decoder_has_the_causal_variant_alone():
    def of_encoder(config):
        return build_mixer("encoder", config)

    def of_decoder(config):
        return build_mixer("decoder", config)

    encoder = Encoder(LayerConfig(**SIZES, mixer=of_encoder, projection_bias=False), 1)
    assert type(encoder.layers.first.self_attention) is Fastformer
    assert encoder.layers.first.self_attention.query_proj.bias is None
    decoder = Decoder(LayerConfig(**SIZES, mixer=of_decoder), 1)
    assert type(decoder.layers.first.self_attention) is CausalFastformer
    with pytest.raises(SettingError, match="of DecoderLayer must be a TargetMixer"):
        Decoder(LayerConfig(**SIZES, mixer=of_encoder), 1)
    with pytest.raises(SettingError, match="of EncoderLayer must not be a TargetMixer"):
        Encoder(LayerConfig(**SIZES, mixer=of_decoder), 1)
