"""Layers that are built in Python get the refusals that settings get."""

import jaxtyping
import pytest
import torch

from heedful.errors import ArgumentError, HeedfulError, SettingError
from heedful.model.fastformer import Fastformer
from heedful.model.layer_config import LayerConfig
from heedful.model.layers import Decoder, Encoder
from heedful.model.relative_maps import RelativeMaps

SIZES = {"d_model": 8, "d_ff": 8, "heads": 2}
CONVOLUTION = {"mixer": "convolution", "window": 3}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mixer": "fast"}, "`mixer` of LayerConfig must be 'attention' or"),
        ({"score": "cosine"}, "`score` of LayerConfig must be"),
        ({"norm": "sandwich"}, "`norm` of LayerConfig must be"),
        ({"norm_kind": "rms"}, "`norm_kind` of LayerConfig must be"),
        ({"window": 0}, "`window` must be at least 1"),
        ({"window": "3"}, "`window` of LayerConfig must be a whole number"),
        ({"mixer": "convolution"}, "`window` must be the width of the convolution"),
        ({"window": 3, "causal_mask": False}, "`causal_mask` must be true"),
        ({"residuals": "no"}, "`residuals` of LayerConfig must be True or False"),
        ({"heads": 0}, "`heads` must be at least 1"),
    ],
)
def test_wrong_choices_are_named(changes, words):
    jaxtyping.config.update("jaxtyping_disable", True)  # a user has no such checks
    with pytest.raises(HeedfulError) as caught:
        LayerConfig(**{**SIZES, **changes})
    assert words in str(caught.value)


@pytest.mark.parametrize("changes", [{"mixer": "fastformer"}, CONVOLUTION])
def test_a_decoder_s_layers_cannot_read_what_follows(changes):
    Encoder(LayerConfig(**SIZES, **changes), 1)
    with pytest.raises(SettingError, match="`mixer` of DecoderLayer must be attention or"):
        Decoder(LayerConfig(**SIZES, **changes), 1)
    with pytest.raises(SettingError, match="`mixer` of EncoderLayer must be"):
        Encoder(LayerConfig(**SIZES, mixer="fastformer-linear"), 1)


@pytest.mark.parametrize("layer", [Fastformer(8, 2), RelativeMaps(8, 3)])
def test_what_mixes_one_sequence_refuses_two_and_masks_by_query(layer):
    x = torch.randn(1, 3, 8)
    with pytest.raises(ArgumentError, match="must be the sequence of `queries_from`"):
        layer(x, x.clone())
    with pytest.raises(ArgumentError, match="does not tell heads or queries apart"):
        layer(x, x, torch.ones(1, 1, 3, 3, dtype=torch.bool))
    with pytest.raises(ArgumentError, match="with d_model=8"):
        layer(x[..., :7], x[..., :7])


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(SettingError, match="`heads` must divide d_model=8"):
        Fastformer(8, 3)
    with pytest.raises(SettingError, match="`width` must be odd"):
        RelativeMaps(8, 2)
