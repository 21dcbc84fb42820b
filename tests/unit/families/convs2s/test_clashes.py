"""Settings of ConvS2S that do not fit are refused, each with what to change."""

import pytest

from heedful.config.load import load_config
from heedful.config.model import ModelConfig
from heedful.errors import SettingError
from heedful.families.convs2s.clashes import convs2s_clashes

BOTH = ["model.encoder=convs2s", "model.decoder=convs2s"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["convs2s.attention=1 21"], "the decoder, which has 20, but got 21"),
        (["convs2s.out_embed_dim=256"], "`model.d_model` (512), but it is 256; leave it out"),
        (["convs2s.encoder_layers=(512,3,2)"], "third number of layer 1 must be at most 1"),
        (["d_model=511"], "must be even for sinusoidal positions"),
    ],
)
def test_what_does_not_fit_is_named(settings, words):
    with pytest.raises(SettingError) as caught:
        load_config("paper-base", [*BOTH, *(f"model.{text}" for text in settings)])
    assert words in str(caught.value)


def test_several_faults_are_named_at_once():
    with pytest.raises(SettingError) as caught:
        load_config("tiny", [*BOTH, "model.convs2s.attention=21", "model.convs2s.out_embed_dim=1"])
    assert "but got 21" in str(caught.value) and "but it is 1;" in str(caught.value)


@pytest.mark.family("recurrent")
def test_an_encoder_of_another_width_is_refused():
    wide = ["model.encoder=recurrent", "model.decoder=convs2s"]
    with pytest.raises(SettingError, match=r"but they are 1024 wide; for a bidirectional encoder"):
        load_config("paper-base", wide)
    halved = load_config("paper-base", [*wide, "model.recurrent.encoder_hidden_size=256"])
    assert convs2s_clashes(halved.model, 512) == []


def test_other_families_have_no_clashes():
    assert convs2s_clashes(ModelConfig(), 512) == []
